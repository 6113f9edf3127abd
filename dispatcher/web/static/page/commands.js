/** The command that a button stands for, as it is typed into a shell. Pure. */
import { write } from "./json.js";

/** A word of a shell, in quotes if it needs them. */
export function quoted(word) {
  const text = String(word);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

const line = (...words) => ["bequeath", ...words].map(quoted).join(" ");

/** Words that are no options, whatever they look like. */
const bare = (...words) => (words.some((word) => String(word).startsWith("-")) ? ["--", ...words] : words);

/** A trial's command or, without one, the same of the experiment. */
const given = (e, trial, verb, ...words) => line(trial === null ? "experiment" : "trial", verb, "-e", e, ...words);
const of = (trial, ...words) => (trial === null ? bare(...words) : bare(trial, ...words));

export const COMMANDS = {
  stop: (e, { drain = false } = {}) => line("stop", ...(drain ? ["--drain"] : []), e),
  kill: (e) => line("kill", e),
  resume: (e) => line("resume", e),
  takeOver: (e) => line("resume", "--take-over", e),
  update: (e, key, value) => line("experiment", "update", "-e", e, key, typeof value === "string" ? value : write(value)),
  sweep: (e) => line("weights", "gc", e),
  share: (name, days, logs) => line("web", "--share", name, ...(days === 7 ? [] : ["--days", days]), ...(logs ? ["--with-logs"] : [])),
  revoke: (name) => line("web", "--revoke", name),
  web: (...words) => line("web", ...words),
  verify: (e) => line("experiment", "verify", e),
  show: (e, trial) => line("trial", "show", "-e", e, trial),
  killTrial: (e, trial) => line("trial", "kill", "-e", e, trial),
  submit: (e, parameters) => line("trial", "submit", "-e", e, parameters),
  log: (e, trial, stream) => line("trial", "log", "-e", e, trial, ...(stream === "stderr" ? ["--stderr"] : [])),
  pin: (e, trial) => line("weights", "pin", "-e", e, trial),
  unpin: (e, trial) => line("weights", "unpin", "-e", e, trial),
  note: (e, trial, text) => given(e, trial, "note", ...of(trial, text)),
  removeNote: (e, trial, number) => given(e, trial, "note", "--remove", number, ...of(trial)),
  tag: (e, trial, { add = [], remove = [] }) => given(e, trial, "tag", ...remove.flatMap((tag) => ["--remove", tag]), ...of(trial, ...add)),
  star: (e, trial, starred) => (trial === null ? line("experiment", "star", ...(starred ? ["--off"] : []), e) : given(e, trial, "star", ...(starred ? ["--off"] : []), trial)),
  leaderboard: (wanted) => line("leaderboard", ...Object.entries(wanted).flatMap(([name, value]) => (name === "starred" ? ["--starred"] : [`--${name}`, value]))),
  tensors: (e, trial) => line("trial", "tensors", "-e", e, trial),
  at: (e, time) => line("experiment", "at", "-e", e, time),
  infer: (e, trial, fields, values) => line("infer", "-e", e, trial, ...fields.flatMap(({ name, kind }) => {
    const value = values[name];
    if (kind === "number") return ["--number", `${name}=${value ?? "NUMBER"}`];
    if (kind === "text") return ["--text", `${name}=${value ?? "TEXT"}`];
    return ["--image", `${name}=FILE`];
  })),
  inferJson: (e, trial, request) => line("infer", "-e", e, trial, request),
  plot: (e, kind, options) => line("plot", kind, e, ...options.flat()),
  list: (e, where) => line("trial", "ls", e, ...(where ? ["--where", where] : [])),
};
