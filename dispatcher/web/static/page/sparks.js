/** Small curves in cells: asked for some at a time, those that are in sight. */
import { html, useEffect, useState } from "./ui.js";
import { get, of } from "./api.js";
import { number } from "./format.js";

const WIDE = 84;
const HIGH = 20;
const POINTS = 24;
/** Trials of one question, and milliseconds in which they gather. */
const MOST = 100;
const GATHER_MS = 120;
/** Seconds before a curve that grows is asked for again. */
const AGAIN_S = 5;
const KEPT = 2000;

/** By experiment and trial: how many reports it was made of, when, and its values. */
const known = new Map();
const wanted = new Map();
let timer = 0;
let busy = false;

/** The line of values within a box, as the path of an SVG; empty for fewer than two. Pure. */
export function sparkPath(values, wide = WIDE, high = HIGH) {
  const low = Math.min(...values);
  const size = Math.max(...values) - low;
  if (values.length < 2 || !Number.isFinite(size)) return "";
  return values.map((value, at) => {
    const x = (at / (values.length - 1)) * (wide - 2) + 1;
    const y = high - 2 - (size > 0 ? (value - low) / size : 0.5) * (high - 4);
    return `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
  }).join("");
}

const keyOf = (experiment, trial) => `${experiment} ${trial}`;

function keep(key, one) {
  known.delete(key);
  known.set(key, one);
  if (known.size > KEPT) known.delete(known.keys().next().value);
}

function soon() {
  if (!timer && !busy && wanted.size) timer = setTimeout(ask, GATHER_MS);
}

/** One question after the other, however fast somebody scrolls. */
async function ask() {
  timer = 0;
  busy = true;
  const some = [...wanted].slice(0, MOST).filter(([, one], _, all) => one.experiment === all[0][1].experiment);
  some.forEach(([key]) => wanted.delete(key));
  const at = Date.now() / 1000;
  try {
    const { curves } = await get(of(some[0][1].experiment, `/curves?trials=${some.map(([, one]) => one.trial).join(",")}&points=${POINTS}`));
    const found = new Map(curves.map((one) => [one.trial, one.values]));
    some.forEach(([key, one]) => {
      keep(key, { reports: one.reports, at, values: found.get(one.trial) ?? [] });
      one.told.forEach((tell) => tell());
    });
  } catch { /* the cells stay empty until they are asked for again */ }
  busy = false;
  soon();
}

/** The curve of a trial; it comes a moment later, and again while it grows. */
export function Spark({ experiment, trial, reports }) {
  const [, again] = useState(0);
  const key = keyOf(experiment, trial);
  useEffect(() => {
    const had = known.get(key);
    if (!(reports > 1) || had?.reports === reports) return undefined;
    const tell = () => again((times) => times + 1);
    const due = setTimeout(() => {
      const one = wanted.get(key) ?? { experiment, trial, told: new Set() };
      one.reports = reports;
      one.told.add(tell);
      wanted.set(key, one);
      soon();
    }, had ? Math.max(0, 1000 * (had.at + AGAIN_S) - Date.now()) : 0);
    return () => {
      clearTimeout(due);
      const one = wanted.get(key);
      one?.told.delete(tell);
      if (one && !one.told.size) wanted.delete(key); // it was scrolled out of sight
    };
  }, [key, reports]);
  const values = known.get(key)?.values ?? [];
  const path = sparkPath(values);
  return path && html`<svg class="spark" viewBox=${`0 0 ${WIDE} ${HIGH}`} width=${WIDE} height=${HIGH} role="img" aria-label=${`from ${number(values[0], 4)} to ${number(values.at(-1), 4)}`}><path d=${path} /></svg>`;
}
