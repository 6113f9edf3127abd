/** The command that a button stands for, as it is typed into a shell. Pure. */
import { write } from "./json.js";

/** A word of a shell, in quotes if it needs them. */
export function quoted(word) {
  const text = String(word);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

const line = (...words) => ["bequeath", ...words].map(quoted).join(" ");

export const COMMANDS = {
  stop: (e, { drain = false } = {}) => line("stop", ...(drain ? ["--drain"] : []), e),
  kill: (e) => line("kill", e),
  resume: (e) => line("resume", e),
  takeOver: (e) => line("resume", "--take-over", e),
  update: (e, key, value) => line("experiment", "update", "-e", e, key, typeof value === "string" ? value : write(value)),
  verify: (e) => line("experiment", "verify", e),
  show: (e, trial) => line("trial", "show", "-e", e, trial),
  killTrial: (e, trial) => line("trial", "kill", "-e", e, trial),
  submit: (e, parameters) => line("trial", "submit", "-e", e, parameters),
  log: (e, trial, stream) => line("trial", "log", "-e", e, trial, ...(stream === "stderr" ? ["--stderr"] : [])),
  pin: (e, trial) => line("weights", "pin", "-e", e, trial),
  unpin: (e, trial) => line("weights", "unpin", "-e", e, trial),
  plot: (e, kind, options) => line("plot", kind, e, ...options.flat()),
  list: (e, where) => line("trial", "ls", e, ...(where ? ["--where", where] : [])),
};
