/** The lineage on a canvas: zoom, pan, pick; by wheel, finger and key. */
import { html, useEffect, useMemo, useRef, useState } from "./ui.js";
import { colour, onTheme, ramp, STEPS } from "./colours.js";
import { lanes, spans, ticks } from "./forest.js";
import { packed, paint } from "./raster.js";
import { stateOf, useWidth } from "./widgets.js";

const AXIS = 24;
const TALLEST_LANE = 26;

/** What the view shows: x and lane at the left top, and how much of each. */
const whole = (forest, height) => ({ x0: forest.low - (forest.high - forest.low) * 0.02, x1: forest.high + (forest.high - forest.low) * 0.03, y0: -0.5, y1: Math.max(forest.lanes + 0.5, (height - AXIS) / TALLEST_LANE - 0.5) });

export function ForestView({ table, version, mode, x, colours: by, within, picked, onPick, onOpen, start, onView, best, height }) {
  const [place, width] = useWidth();
  const canvas = useRef(null);
  const view = useRef(null);
  const [theme, setTheme] = useState(0);
  useEffect(() => onTheme(() => setTheme((one) => one + 1)), []);

  const made = useMemo(() => {
    const now = table.asOf ?? Date.now() / 1000;
    const laid = table.whole && !within ? lanesOfWhole(table) : lanes(table, within);
    const parents = new Int32Array(table.count);
    for (let row = 0; row < table.count; row += 1) parents[row] = table.parentRow(row);
    const span = limits(spans(table, x, now), laid.order);
    if (table.whole && !within) Object.assign(span, spanOfWhole(table.whole, x));
    const ranks = table.ranks(mode);
    const order = [...laid.order].sort((a, b) => (Number.isNaN(ranks[a]) ? -1 : ranks[a]) - (Number.isNaN(ranks[b]) ? -1 : ranks[b]));
    const byLane = new Map();
    for (const row of laid.order) byLane.has(laid.lane[row]) ? byLane.get(laid.lane[row]).push(row) : byLane.set(laid.lane[row], [row]);
    return { ...laid, ...span, parents, order, byLane };
  }, [table, version, x, within, mode]);
  const painted = useMemo(() => ({ ...made, colours: hues(table, by, mode), link: packed(colour("link-line")) }), [made, by, theme]);

  const key = `${x}|${within ? "family" : "all"}`;
  const known = useRef(key);
  if (!view.current) view.current = start ?? whole(made, height);
  else if (known.current !== key) view.current = whole(made, height);
  known.current = key;

  const frame = useRef(0);
  const redraw = useRef(() => {});
  redraw.current = () => draw(canvas.current, painted, view.current, { width, height, x, table, picked, best });
  const ask = () => {
    if (frame.current) return;
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      if (canvas.current) redraw.current();
    });
  };
  useEffect(ask, [painted, width, height, picked, best]);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);

  const settle = useRef(0);
  const moved = () => {
    ask();
    clearTimeout(settle.current);
    settle.current = setTimeout(() => onView(view.current), 400);
  };
  useEffect(() => () => clearTimeout(settle.current), []);
  const zoom = (factor, fx = 0.5, fy = 0.5, onlyX = false) => {
    const now = view.current;
    const full = whole(made, height);
    const span = clamp((now.x1 - now.x0) * factor, (full.x1 - full.x0) / 1e6, (full.x1 - full.x0) * 1.2);
    const tall = onlyX ? now.y1 - now.y0 : clamp((now.y1 - now.y0) * factor, Math.min(full.y1 - full.y0, (height - AXIS) / TALLEST_LANE), (full.y1 - full.y0) * 1.2);
    const x0 = now.x0 + (now.x1 - now.x0 - span) * fx;
    const y0 = now.y0 + (now.y1 - now.y0 - tall) * fy;
    view.current = { x0, x1: x0 + span, y0, y1: y0 + tall };
    moved();
  };
  const pan = (dx, dy) => {
    const { x0, x1, y0, y1 } = view.current;
    view.current = { x0: x0 + dx * (x1 - x0), x1: x1 + dx * (x1 - x0), y0: y0 + dy * (y1 - y0), y1: y1 + dy * (y1 - y0) };
    moved();
  };
  const tools = useRef({});
  tools.current = { zoom, pan, made, view, width, height, onPick, onOpen, picked, table };
  useEffect(() => listen(canvas.current, tools), []);
  useEffect(() => {
    if (picked >= 0) reveal(made, view, picked, moved);
  }, [picked]);

  const keyed = (event) => {
    const step = { ArrowLeft: "up", h: "up", ArrowRight: "down", l: "down", ArrowDown: "next", j: "next", ArrowUp: "before", k: "before" }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") zoom(0.7);
    else if (event.key === "-") zoom(1 / 0.7);
    else if (event.key === "0") {
      view.current = whole(made, height);
      moved();
    } else if (event.key === "Enter" && picked >= 0) onOpen(picked);
    else if (step) onPick(neighbour(table, made, picked, step));
    else return;
    event.preventDefault();
  };
  return html`<div ref=${place} class="forest">
    <canvas ref=${canvas} tabindex="0" role="application" aria-roledescription="picture of the lineage" aria-label=${`lineage of ${made.order.length} trials, ${x} from left to right; arrows walk it, plus and minus zoom`} onKeyDown=${keyed}></canvas>
    <div class="zoom"><button type="button" aria-label="zoom in" onClick=${() => zoom(0.6)}>+</button><button type="button" aria-label="zoom out" onClick=${() => zoom(1 / 0.6)}>−</button><button type="button" onClick=${() => {
      view.current = whole(made, height);
      moved();
    }}>all</button></div></div>`;
}

/** Lanes of a search as it was: those of today, so that nothing jumps while time goes on. */
function lanesOfWhole(table) {
  const all = table.whole.once("lanes", () => lanes(table.whole));
  const lane = Int32Array.from({ length: table.count }, (_, row) => all.lane[table.index[row]]);
  const order = Array.from({ length: table.count }, (_, row) => row);
  return { lane, lanes: all.lanes, order };
}

/** Where time begins and ends today. */
const spanOfWhole = (table, x) => table.once(`span ${x}`, () => {
  const { low, high } = spans(table, x, table.asOf ?? Date.now() / 1000);
  return { low, high };
});

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

function limits(span, order) {
  let [low, high] = [Infinity, -Infinity];
  for (const row of order) {
    low = Math.min(low, span.from[row]);
    high = Math.max(high, span.to[row]);
  }
  return order.length ? { ...span, low, high: high > low ? high : low + 1 } : { ...span, low: 0, high: 1 };
}

/** A colour for each row, as numbers of an image. */
function hues(table, by, mode) {
  const found = new Uint32Array(table.count);
  const steps = ramp().map(packed);
  const none = packed(colour("rank-none"));
  const ranks = table.ranks(mode);
  const gain = table.numbers("gain", mode);
  const states = new Map();
  const ofState = (word) => {
    if (!states.has(word)) states.set(word, packed(colour(`state-${word.replace(/\W+/g, "-")}`) || colour("rank-none")));
    return states.get(word);
  };
  const [better, worse, same] = ["better", "worse", "rank-none"].map((name) => packed(colour(name)));
  for (let row = 0; row < table.count; row += 1) {
    const live = table.get("state", row) !== "ended";
    if (by === "state" || live) found[row] = ofState(stateOf(table.get("state", row), table.get("outcome", row)) ?? "");
    else if (by === "gain") found[row] = Number.isNaN(gain[row]) || gain[row] === 0 ? same : gain[row] > 0 ? better : worse;
    else found[row] = Number.isNaN(ranks[row]) ? none : steps[Math.round(ranks[row] * (STEPS - 1))];
  }
  return found;
}

function draw(canvas, forest, view, { width, height, x, table, picked, best }) {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round((height - AXIS) * ratio))];
  if (canvas.width !== w || canvas.height !== Math.round(height * ratio)) {
    canvas.width = w;
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  const image = pen.createImageData(w, h);
  const scale = { x: view.x0, y: view.y0, sx: w / (view.x1 - view.x0), sy: h / (view.y1 - view.y0) };
  paint(new Uint32Array(image.data.buffer), w, h, scale, forest);
  pen.putImageData(image, 0, 0);
  pen.scale(ratio, ratio);
  const at = { x: (value) => ((value - view.x0) / (view.x1 - view.x0)) * width, y: (lane) => ((lane + 0.5 - view.y0) / (view.y1 - view.y0)) * (height - AXIS) };
  pen.save();
  pen.beginPath();
  pen.rect(0, 0, width, height - AXIS);
  pen.clip();
  if (best >= 0) way(pen, forest, table.line(best), at, colour("line-2"), 3);
  if (picked >= 0 && forest.lane[picked] >= 0) {
    way(pen, forest, table.line(picked), at, colour("text"), 2);
    mark(pen, forest, picked, at, colour("text"));
  }
  names(pen, forest, view, at, { height: height - AXIS, width, table });
  pen.restore();
  axis(pen, view, at, { width, height, x });
}

/** A line of descent: over the bars, and along the links. */
function way(pen, forest, line, at, stroke, thick) {
  pen.strokeStyle = stroke;
  pen.lineWidth = thick;
  pen.lineJoin = "round";
  pen.beginPath();
  line.filter((row) => forest.lane[row] >= 0).forEach((row, place) => {
    const y = at.y(forest.lane[row]);
    if (place === 0) pen.moveTo(at.x(forest.from[row]), y);
    else pen.lineTo(at.x(forest.to[line[line.indexOf(row) - 1]] ?? forest.from[row]), y);
    pen.lineTo(at.x(forest.to[row]), y);
  });
  pen.stroke();
}

function mark(pen, forest, row, at, stroke) {
  const [x0, x1, y] = [at.x(forest.from[row]), at.x(forest.to[row]), at.y(forest.lane[row])];
  pen.strokeStyle = stroke;
  pen.lineWidth = 2;
  pen.strokeRect(x0 - 4, y - 8, Math.max(8, x1 - x0 + 8), 16);
}

function names(pen, forest, view, at, { height, width, table }) {
  const tall = height / (view.y1 - view.y0);
  if (tall < 11) return;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.lineWidth = 3;
  pen.strokeStyle = colour("canvas");
  pen.fillStyle = colour("text");
  for (let lane = Math.max(0, Math.floor(view.y0)); lane <= Math.min(forest.lanes, Math.ceil(view.y1)); lane += 1) {
    let free = -Infinity;
    const rows = [...(forest.byLane.get(lane) ?? [])].sort((a, b) => forest.from[a] - forest.from[b]);
    for (const row of rows) {
      const [x0, x1] = [at.x(forest.from[row]), at.x(forest.to[row])];
      const text = String(table.number("trial", row));
      const room = pen.measureText(text).width + 6;
      if (x1 < 0 || x0 > width || x0 + 2 < free) continue;
      pen.strokeText(text, Math.max(2, x0 + 3), at.y(lane));
      pen.fillText(text, Math.max(2, x0 + 3), at.y(lane));
      free = x0 + room;
    }
  }
}

function axis(pen, view, at, { width, height, x }) {
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "alphabetic";
  pen.textAlign = "left";
  pen.fillStyle = colour("quiet");
  pen.strokeStyle = colour("grid");
  pen.lineWidth = 1;
  const time = x === "time";
  for (const one of ticks(view.x0, view.x1, Math.max(2, Math.floor(width / 110)), time)) {
    const place = Math.round(at.x(one)) + 0.5;
    pen.beginPath();
    pen.moveTo(place, height - AXIS);
    pen.lineTo(place, height - AXIS + 5);
    pen.stroke();
    pen.fillText(time ? clock(one, view.x1 - view.x0) : `gen ${Math.round(one)}`, place + 3, height - 8);
  }
  pen.beginPath();
  pen.moveTo(0, height - AXIS + 0.5);
  pen.lineTo(width, height - AXIS + 0.5);
  pen.stroke();
}

function clock(seconds, span) {
  const then = new Date(seconds * 1000);
  const text = then.toLocaleTimeString("en-GB");
  if (span > 86400 * 2) return `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${text.slice(0, 5)}`;
  return span < 600 ? text : text.slice(0, 5);
}

/** The row at a point, or the nearest within some pixels; -1 if there is none. */
export function rowAt(made, view, width, height, x, y) {
  const perLane = (height - AXIS) / (view.y1 - view.y0);
  const value = view.x0 + (x / width) * (view.x1 - view.x0);
  const middle = view.y0 + y / perLane;
  const reach = Math.max(0, Math.ceil(5 / perLane));
  const perX = width / (view.x1 - view.x0);
  let [found, nearest] = [-1, 10];
  for (let lane = Math.floor(middle) - reach; lane <= Math.floor(middle) + reach; lane += 1) {
    const off = Math.abs(lane + 0.5 - middle) * perLane;
    for (const row of made.byLane.get(lane) ?? []) {
      const aside = value < made.from[row] ? (made.from[row] - value) * perX : value > made.to[row] ? (value - made.to[row]) * perX : 0;
      const far = Math.hypot(aside, perLane > 8 ? Math.max(0, off - perLane / 2) : off);
      if (far < nearest) [found, nearest] = [row, far];
    }
  }
  return found;
}

function listen(canvas, tools) {
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const wheel = (event) => {
    event.preventDefault();
    const { zoom, width, height } = tools.current;
    const [x, y] = point(event);
    zoom(Math.exp(clamp(event.deltaY, -100, 100) / 250), x / width, y / (height - AXIS), event.shiftKey);
  };
  const held = new Map();
  let travelled = 0;
  const down = (event) => {
    held.set(event.pointerId, point(event));
    travelled = 0;
    canvas.setPointerCapture(event.pointerId);
  };
  const move = (event) => {
    const before = held.get(event.pointerId);
    const { pan, zoom, width, height, made, view } = tools.current;
    const [x, y] = point(event);
    if (!before) {
      canvas.style.cursor = rowAt(made, view.current, width, height, x, y) >= 0 ? "pointer" : "grab";
      return;
    }
    const others = [...held].filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const [, [ox, oy]] = others[0];
      const [was, is] = [Math.hypot(before[0] - ox, before[1] - oy), Math.hypot(x - ox, y - oy)];
      if (was > 0 && is > 0) zoom(was / is, (x + ox) / 2 / width, (y + oy) / 2 / (height - AXIS));
    } else pan(-(x - before[0]) / width, -(y - before[1]) / (height - AXIS));
    travelled += Math.hypot(x - before[0], y - before[1]);
    held.set(event.pointerId, [x, y]);
  };
  const up = (event) => {
    held.delete(event.pointerId);
    if (travelled > 4 || event.type === "pointercancel") return;
    const { made, view, width, height, onPick } = tools.current;
    onPick(rowAt(made, view.current, width, height, ...point(event)));
  };
  const twice = () => tools.current.picked >= 0 && tools.current.onOpen(tools.current.picked);
  const all = { wheel, pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, dblclick: twice };
  for (const [name, handler] of Object.entries(all)) canvas.addEventListener(name, handler, { passive: false });
  return () => Object.entries(all).forEach(([name, handler]) => canvas.removeEventListener(name, handler));
}

function reveal(made, view, row, moved) {
  const now = view.current;
  const lane = made.lane[row];
  if (lane === undefined || lane < 0) return;
  let { x0, x1, y0, y1 } = now;
  if (lane < y0 || lane + 1 > y1) [y0, y1] = [lane + 0.5 - (y1 - y0) / 2, lane + 0.5 + (y1 - y0) / 2];
  const middle = (made.from[row] + made.to[row]) / 2;
  if (middle < x0 || middle > x1) [x0, x1] = [middle - (x1 - x0) / 2, middle + (x1 - x0) / 2];
  if (x0 === now.x0 && y0 === now.y0) return;
  view.current = { x0, x1, y0, y1 };
  moved();
}

function neighbour(table, made, row, step) {
  if (row < 0) return made.order[0] ?? -1;
  if (step === "up") return Math.max(row, -1) >= 0 && made.parents[row] >= 0 ? made.parents[row] : row;
  const below = (one) => (table.children.get(one) ?? []).filter((child) => made.lane[child] >= 0);
  if (step === "down") return below(row)[0] ?? row;
  const above = made.parents[row];
  const beside = above >= 0 ? below(above) : made.order.filter((one) => made.parents[one] < 0).sort((a, b) => a - b);
  const place = beside.indexOf(row) + (step === "next" ? 1 : -1);
  return beside[place] ?? row;
}
