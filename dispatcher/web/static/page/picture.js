/** Pictures of plots: canvases with axes as the server's data have them, and a name for those who do not see. */
import { html, useEffect, useRef, useState } from "./ui.js";
import { colour, onTheme } from "./colours.js";
import { useWidth } from "./widgets.js";
import { brief } from "./safe.js";
import { number } from "./format.js";

/** Where a value stands on an axis, from 0 to 1; null where there is none. Pure. */
export function share(axis, value) {
  if (value === null || value === undefined) return null;
  const scale = axis.kind === "log" ? Math.log : (one) => one;
  const [low, high] = [scale(axis.low), scale(axis.high)];
  // Halves, since the distance of two finite numbers may be none.
  const size = high / 2 - low / 2;
  return size > 0 ? (scale(value) / 2 - low / 2) / size : 0.5;
}

/** Words of an axis and where they stand, from 0 to 1. Pure. */
export function marks(axis, most = 5) {
  if (axis.kind === "choice") {
    const step = Math.max(1, Math.ceil(axis.choices.length / (most * 2)));
    return axis.choices.map((word, at) => [share(axis, at), brief(word, 24)]).filter((_, at) => at % step === 0);
  }
  return Array.from({ length: most }, (_, at) => at / (most - 1)).map((part) => [part, number(
    axis.kind === "log" ? Math.exp(Math.log(axis.low) * (1 - part) + Math.log(axis.high) * part) : axis.low * (1 - part) + axis.high * part, 3,
  )]);
}

/** The value of an axis in words. Pure. */
export const worded = (axis, value) =>
  value === null || value === undefined ? "none" : axis.kind === "choice" ? brief(axis.choices[value] ?? "", 40) : number(value, 5);

/** An axis of results. Pure. */
export const resultAxis = (name, values) => {
  const sorted = values.filter(Number.isFinite);
  return { name, kind: "number", low: sorted.reduce((a, b) => Math.min(a, b), Infinity), high: sorted.reduce((a, b) => Math.max(a, b), -Infinity), choices: [], missing: 0 };
};

/** A name of an axis with its scale. */
export const titled = (axis, most = 30) => brief(axis.name, most) + (axis.kind === "log" ? " (log)" : "");

/**
 * A canvas that is drawn anew when its data, its width or the theme change.
 * `draw(pen, width, height)` may return places [[x, y, trial], …]: a click near one calls `onPick`.
 */
export function Picture({ draw, data, height, label, onPick, onKey }) {
  const [place, width] = useWidth();
  const canvas = useRef(null);
  const spots = useRef([]);
  const [theme, setTheme] = useState(0);
  useEffect(() => onTheme(() => setTheme((times) => times + 1)), []);
  useEffect(() => {
    const ratio = devicePixelRatio || 1;
    const one = canvas.current;
    one.width = width * ratio;
    one.height = height * ratio;
    one.style.width = `${width}px`;
    one.style.height = `${height}px`;
    const pen = one.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    spots.current = draw(pen, width, height) ?? [];
  }, [draw, data, width, height, theme]);
  const pick = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [near, found] = [144, null];
    for (const [a, b, trial] of spots.current) {
      const far = (a - x) ** 2 + (b - y) ** 2;
      if (far < near) [near, found] = [far, trial];
    }
    if (found !== null) onPick(found);
  };
  return html`<div ref=${place}><canvas ref=${canvas} class="parallel" role="img" aria-label=${label} tabindex=${onKey ? 0 : undefined}
    onClick=${onPick ? pick : undefined} onKeyDown=${onKey}></canvas></div>`;
}

/** Draws both axes; returns functions from shares to pixels. */
export function frame(pen, { x, y, left = 56, top = 12, width, height }) {
  const bottom = height - 40;
  const right = width - 14;
  const lower = x.missing ? 26 : 0; // room for those without a value
  const px = (part) => (part === null ? left + 8 : left + lower + 6 + part * (right - left - lower - 12));
  const raised = y.missing ? 22 : 0;
  const py = (part) => (part === null ? bottom - 8 : bottom - raised - 4 - part * (bottom - raised - top - 8));
  pen.strokeStyle = colour("grid");
  pen.fillStyle = colour("quiet");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(left, top);
  pen.lineTo(left, bottom);
  pen.lineTo(right, bottom);
  pen.stroke();
  pen.textAlign = "right";
  for (const [part, word] of [...marks(y), ...(y.missing ? [[null, "none"]] : [])]) pen.fillText(fitted(pen, word, left - 8), left - 5, py(part) + 4);
  pen.textAlign = "center";
  const words = marks(x, width < 420 ? 3 : 5);
  const room = (right - left) / Math.max(2, words.length) - 4;
  for (const [part, word] of [...words, ...(x.missing ? [[null, "none"]] : [])]) pen.fillText(fitted(pen, word, room), Math.min(px(part), right - 8), bottom + 14);
  pen.fillStyle = colour("text");
  pen.fillText(fitted(pen, titled(x, 60), right - left), (left + right) / 2, height - 8);
  return { px, py, left, right, top, bottom };
}

export function fitted(pen, text, room) {
  if (pen.measureText(text).width <= Math.max(24, room)) return text;
  let most = text.length;
  while (most > 2 && pen.measureText(`${text.slice(0, most)}…`).width > Math.max(24, room)) most -= 1;
  return `${text.slice(0, most)}…`;
}

export function dot(pen, x, y, size = 2.5) {
  pen.beginPath();
  pen.arc(x, y, size, 0, 2 * Math.PI);
  pen.fill();
}

/** A mark for the best trial: a star, so that no colour is needed. */
export function star(pen, x, y) {
  pen.lineWidth = 1;
  pen.fillStyle = colour("line-2");
  pen.strokeStyle = colour("text");
  pen.beginPath();
  for (let at = 0; at < 10; at += 1) {
    const [angle, far] = [(at * Math.PI) / 5 - Math.PI / 2, at % 2 ? 3 : 7];
    pen.lineTo(x + far * Math.cos(angle), y + far * Math.sin(angle));
  }
  pen.closePath();
  pen.fill();
  pen.stroke();
}
