/** Parameters against results: a line a trial, coloured by rank, the best on top. */
import { html, useEffect, useMemo, useRef, useState } from "./ui.js";
import { colour, onTheme, ramp, STEPS } from "./colours.js";
import { telling } from "./progress.js";
import { Empty, Panel, useWidth } from "./widgets.js";
import { brief } from "./safe.js";
import { count, number } from "./format.js";

const HEIGHT = 240;
const MOST_LINES = 1500;
const BEST = 200;

/** The axes: where a row stands on each, from 0 to 1. Pure. */
export function axes(table, names) {
  return names.map((name) => {
    const column = table.columns.get(name);
    if (!column.numeric) {
      const texts = [...table.tally(name).keys()].sort();
      const place = new Map(texts.map((text, at) => [text, texts.length > 1 ? at / (texts.length - 1) : 0.5]));
      return { name, low: brief(texts[0] ?? "", 16), high: brief(texts.at(-1) ?? "", 16), at: (row) => place.get(column.get(row)) ?? NaN };
    }
    let [low, high] = [Infinity, -Infinity];
    for (let row = 0; row < table.count; row += 1) {
      const value = column.data[row];
      if (!Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const log = low > 0 && high / low > 50;
    const scale = log ? Math.log : (value) => value;
    const [begin, size] = [scale(low), scale(high) - scale(low) || 1];
    return { name, log, low: number(low, 3), high: number(high, 3), at: (row) => (scale(column.data[row]) - begin) / size };
  });
}

/** Rows to draw, the worst first: the best, and an even sample of the others. Pure. */
export function sample(table, mode) {
  const order = table.order("value", mode !== "minimize");
  let many = order.length;
  while (many > 0 && Number.isNaN(table.number("value", order[many - 1]))) many -= 1;
  const step = Math.max(1, (many - BEST) / (MOST_LINES - BEST));
  const taken = [...order.subarray(0, Math.min(BEST, many))];
  for (let at = BEST; at < many; at += step) taken.push(order[Math.floor(at)]);
  return { rows: taken.reverse(), of: many };
}

export function Parallel({ table, mode, version }) {
  const [place, width] = useWidth();
  const canvas = useRef(null);
  const [theme, setTheme] = useState(0);
  useEffect(() => onTheme(() => setTheme((count_) => count_ + 1)), []);
  const made = useMemo(() => {
    const names = telling(table, width < 700 ? 5 : 11);
    if (!names.length) return null;
    const all = axes(table, [...names, "value"]);
    return { axes: all, ...sample(table, mode), ranks: table.ranks(mode) };
  }, [table, version, mode, width < 700]);
  useEffect(() => {
    if (made && canvas.current && made.rows.length) draw(canvas.current, made, width);
  }, [made, width, theme]);
  const empty = !made || made.rows.length === 0;
  return html`<${Panel} title="parameters and results" wide side=${empty ? "" : made.rows.length < made.of ? `${count(made.rows.length)} of ${count(made.of)}: the best ${BEST}, a sample of the others` : `${count(made.of)} trials`}>
    <div ref=${place}>${empty ? html`<${Empty}>No results with parameters that differ.<//>`
      : html`<canvas ref=${canvas} class="parallel" role="img" aria-label=${`parallel coordinates of ${made.axes.map((one) => one.name).join(", ")}`}></canvas>`}</div><//>`;
}

function draw(canvas, made, width) {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${HEIGHT}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  drawLines(pen, made, width, HEIGHT);
}

/** Draws lines over axes: rows in their order, coloured by `ranks` from 0 to 1. */
export function drawLines(pen, { axes: all, rows, ranks }, width, height) {
  const [left, right, top, bottom] = [24, 44, 40, height - 18];
  const x = (at) => left + (at * (width - left - right)) / Math.max(1, all.length - 1);
  const y = (part) => bottom - part * (bottom - top);
  const colours = ramp();
  pen.lineWidth = 1;
  for (const row of rows) {
    const rank = ranks[row];
    pen.strokeStyle = colours[Math.round(rank * (STEPS - 1))];
    pen.globalAlpha = rows.length < 60 ? 0.8 : rank > 0.9 ? 0.55 : 0.16;
    pen.beginPath();
    let drawing = false;
    all.forEach((axis, at) => {
      const part = axis.at(row);
      if (Number.isNaN(part)) drawing = false;
      else if (drawing) pen.lineTo(x(at), y(part));
      else {
        pen.moveTo(x(at), y(part));
        drawing = true;
      }
    });
    pen.stroke();
  }
  pen.globalAlpha = 1;
  pen.font = "11px system-ui, sans-serif";
  const room = (width - left - right) / Math.max(1, all.length - 1);
  all.forEach((axis, at) => {
    pen.strokeStyle = colour("quiet");
    pen.beginPath();
    pen.moveTo(x(at), top);
    pen.lineTo(x(at), bottom);
    pen.stroke();
    pen.textAlign = at === 0 ? "left" : at === all.length - 1 ? "right" : "center";
    const shift = at === 0 ? -left + 2 : at === all.length - 1 ? right - 2 : 0;
    pen.fillStyle = colour("text");
    pen.fillText(fitted(pen, brief(axis.name, 40) + (axis.log ? " (log)" : ""), room - 6), x(at) + shift, at % 2 && room < 90 ? 10 : 23);
    pen.fillStyle = colour("quiet");
    pen.fillText(fitted(pen, axis.high, room - 4), x(at) + shift, top - 3);
    pen.fillText(fitted(pen, axis.low, room - 4), x(at) + shift, bottom + 13);
  });
}

function fitted(pen, text, room) {
  if (pen.measureText(text).width <= Math.max(24, room)) return text;
  let most = text.length;
  while (most > 2 && pen.measureText(`${text.slice(0, most)}…`).width > Math.max(24, room)) most -= 1;
  return `${text.slice(0, most)}…`;
}
