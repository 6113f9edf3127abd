/** Numbers, durations, times and values as people read them. Pure. */
import { brief, visible } from "./safe.js";
import { write } from "./json.js";

export const NOTHING = "–";

const grouped = new Intl.NumberFormat("en-US"); // to ask a number for it takes ten times as long

/** A number in few digits: 0.9731, 2.6e-4, 12,345; what is none is a dash. */
export function number(value, digits = 5) {
  if (typeof value === "bigint") return cutNumber(value.toString());
  if (typeof value !== "number" || Number.isNaN(value)) return NOTHING;
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return minus(grouped.format(value));
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
    return minus(value.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, "e").replace("e+", "e"));
  }
  return minus(String(Number(value.toPrecision(digits))));
}

const minus = (text) => text.replace(/^-/, "−");
const cutNumber = (text) => (text.length > 24 ? `${text.slice(0, 10)}…${text.slice(-8)} (${text.length} digits)` : minus(text));

/** With its sign: +0.0021. */
export const signed = (value) =>
  typeof value !== "number" || Number.isNaN(value) ? NOTHING : `${value > 0 ? "+" : ""}${number(value, 3)}`;

export const count = (value) =>
  typeof value === "number" && Number.isFinite(value) ? grouped.format(Math.round(value)) : NOTHING;

/** "1 trial", "1,204 trials". */
export const several = (value, word, words = `${word}s`) => `${count(value)} ${value === 1 ? word : words}`;

/** A duration: 41 ms, 3.2 s, 12 m 05 s, 3 h 10 m, 2 d 4 h. */
export function duration(seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds) || seconds < 0) return NOTHING;
  if (seconds < 0.001) return "0 s";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${String(whole % 60).padStart(2, "0")} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} m`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** Roughly, for estimates: about 43 m. */
export function roughly(seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds) || seconds < 0) return NOTHING;
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} m`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} d`;
}

/** A moment in local time: 10:41:02, with the day if it is another one. */
export function time(seconds, now = Date.now() / 1000) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return NOTHING;
  const then = new Date(seconds * 1000);
  if (Number.isNaN(then.getTime())) return NOTHING;
  const clock = then.toLocaleTimeString("en-GB");
  const same = then.toDateString() === new Date(now * 1000).toDateString();
  return same ? clock : `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "2-digit" })} ${clock.slice(0, 5)}`;
}

/** A moment in local time with its day and its seconds. */
export function moment(seconds) {
  const then = new Date((seconds ?? NaN) * 1000);
  if (Number.isNaN(then.getTime())) return NOTHING;
  return `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "2-digit" })} ${then.toLocaleTimeString("en-GB")}`;
}

/** How long ago. */
export const ago = (seconds, now = Date.now() / 1000) =>
  typeof seconds === "number" && Number.isFinite(seconds) ? `${roughly(Math.max(0, now - seconds))} ago` : NOTHING;

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
export function bytes(size) {
  if (typeof size !== "number" || !Number.isFinite(size)) return NOTHING;
  let unit = 0;
  let rest = size;
  while (rest >= 1000 && unit < UNITS.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${unit && rest < 10 ? rest.toFixed(1) : Math.round(rest)} ${UNITS[unit]}`;
}

/** Any value of a trial in one line. */
export function value(given, most = 120) {
  if (given === null || given === undefined) return NOTHING;
  if (typeof given === "number" || typeof given === "bigint") return number(given, 6);
  if (typeof given === "string") return given === "" ? "“”" : brief(given, most);
  return brief(write(given), most);
}

/** A value with all there is, for titles: exact digits, hidden marks shown. */
export function whole(given, most = 2000) {
  const text = typeof given === "string" ? given : write(given ?? null);
  return visible(text.length > most ? `${text.slice(0, most)}…` : text);
}
