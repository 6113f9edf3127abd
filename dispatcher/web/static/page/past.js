/** A search as it was: the lives of its trials, and its table as of a moment. Pure. */
import { Table } from "./table.js";

/** The lives of all trials, as the server tells them in columns. */
export class History {
  /** @param {{began: number, until: number, trials: number[], proposed: number[], spans: {trial: number[], began: number[], ended: number[]}, notes: string[]}} told */
  constructor(told) {
    this.notes = told.notes;
    this.began = told.began;
    this.until = told.until;
    this.proposed = new Map(told.trials.map((trial, at) => [trial, told.proposed[at] ?? NaN]));
    this.spans = new Map();
    told.spans.trial.forEach((trial, at) => {
      if (!this.spans.has(trial)) this.spans.set(trial, []);
      this.spans.get(trial).push([told.spans.began[at], told.spans.ended[at] ?? Infinity]);
    });
  }

  /** When the parameters of a row's trial were known; NaN if they are not. */
  proposedAt(table, row) {
    const trial = table.number("trial", row);
    return this.proposed.has(trial) ? this.proposed.get(trial) : table.number("started", row);
  }

  /** The times in which a row's trial ran. One that came since has one, of the table. */
  spansOf(table, row) {
    const known = this.spans.get(table.number("trial", row));
    if (known) return known;
    const began = table.number("started", row);
    const ended = table.number("ended", row);
    return Number.isNaN(began) ? [] : [[began, Number.isNaN(ended) ? Infinity : ended]];
  }

  /** The state of a row's trial at a moment: open, queued, running, ended; null before it was. */
  stateAt(table, row, time) {
    if (!(table.number("created", row) <= time)) return null;
    if (table.number("ended", row) <= time) return "ended";
    if (this.spansOf(table, row).some(([began, ended]) => began <= time && time < ended)) return "running";
    return this.proposedAt(table, row) <= time ? "queued" : "open";
  }
}

// What a column of the table is known by: a moment of the trial's life.
const SINCE = { trial: "created", state: "created", created: "created", started: "started", ended: "ended", outcome: "ended", value: "ended", reports: "ended", latest: "ended" };

/**
 * The table as it was. Rows are those of trials that were there; what came later is empty.
 * `whole` is the table of now, and `index` has the row of each row in it.
 */
export function tableAt(table, history, time) {
  const rows = [];
  const states = [];
  for (let row = 0; row < table.count; row += 1) {
    const state = history.stateAt(table, row, time);
    if (state === null) continue;
    rows.push(row);
    states.push(state);
  }
  const ended = states.map((state) => state === "ended");
  const known = rows.map((row) => history.proposedAt(table, row) <= time);
  const columns = [...table.columns.values()].map((column) => {
    const { name, kind, group, choices } = column;
    const whether = shown(name, group, { table, rows, ended, known, time, history });
    return { name, kind: kind === "choice" ? "choice" : kind, group, choices: choices ?? undefined,
      values: rows.map((row, at) => {
        if (name === "state") return states[at];
        if (name === "attempts") return history.spansOf(table, row).filter(([began]) => began <= time).length;
        return whether(row, at) ? column.get(row) : null;
      }) };
  });
  const then = new Table({ cursor: table.cursor, count: rows.length, left_out: table.leftOut, columns });
  return Object.assign(then, { whole: table, index: Int32Array.from(rows), asOf: time, version: table.version + time });
}

function shown(name, group, { table, ended, known, time, history }) {
  if (name === "pinned") return () => false; // rows do not keep since when
  if (name === "worker") return (row, at) => ended[at] || history.spansOf(table, row).filter(([began]) => began <= time).length === table.number("attempts", row);
  if (name === "parent" || name === "generation" || group === "parameter") return (_row, at) => known[at];
  const since = SINCE[name] ?? (group === "objective" ? "ended" : "created");
  return (row) => table.number(since, row) <= time;
}

/** What the summary of an experiment counts, as it was. */
export function summaryAt(summary, table) {
  const tally = (name) => Object.fromEntries(table.tally(name));
  const states = tally("state");
  return { ...summary, states, outcomes: tally("outcome"), trials: table.count, submitted: table.count, ended: states.ended ?? 0,
    rate: null, time_left_s: null, cpu_s: null, last_event_at: table.asOf };
}
