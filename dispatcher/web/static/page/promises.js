/**
 * The ten promises (docs/reliability.md) over one run, each with what the run shows of it: true,
 * false, or null where it shows nothing either way. Pure.
 */
import { endings, inheritance, rings } from "./receipt.js";
import { count, duration, number, several } from "./format.js";

const WAITING = new Set(["open", "blocked", "held", "parked"]);
const OVER = new Set(["completed", "stopped", "failed"]);

/** Attempts in all, trials of which two ran at once, and the most that ran at once. */
export function attempts(told) {
  const { trial, began, ended } = told.spans;
  const order = trial.map((_, at) => at).sort((a, b) => trial[a] - trial[b] || began[a] - began[b]);
  const twice = new Set();
  for (let at = 1; at < order.length; at += 1) {
    const [before, now] = [order[at - 1], order[at]];
    if (trial[before] === trial[now] && (ended[before] ?? Infinity) > began[now]) twice.add(trial[now]);
  }
  // An end comes before a beginning at the same moment: the slot is taken by the next one.
  const steps = trial.flatMap((_, at) => [[began[at], 1], [ended[at] ?? Infinity, -1]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let [now, most] = [0, 0];
  for (const [, step] of steps) {
    now += step;
    most = Math.max(most, now);
  }
  return { all: trial.length, twice: [...twice], most };
}

/** Requests that wait, and those among them that have had an attempt. */
export function waiting(table) {
  let many = 0;
  const holding = [];
  for (let row = 0; row < table.count; row += 1) {
    if (!WAITING.has(table.get("state", row))) continue;
    many += 1;
    if (table.number("attempts", row) > 0) holding.push(table.number("trial", row));
  }
  return { many, holding };
}

/** Trials that failed, and those that succeeded after the first of them had ended. */
export function failures(table) {
  let [failed, first, after] = [0, Infinity, 0];
  for (let row = 0; row < table.count; row += 1) {
    if (table.get("outcome", row) !== "failed") continue;
    failed += 1;
    first = Math.min(first, table.number("ended", row));
  }
  for (let row = 0; row < table.count; row += 1) after += table.get("outcome", row) === "succeeded" && table.number("ended", row) > first;
  return { failed, after };
}

/**
 * The lines of the receipt, in the order of the promises.
 * @param {{table: any, standing: any, history: any, tensors: any, verified: any}} seen what is not known yet is null
 */
export function promises({ table, standing, history, tensors, verified }) {
  const { experiment: summary, head } = standing;
  const line = (promise, what, ok, figure, more = {}) => ({ promise, what, ok, figure, trials: [], ...more });
  return [...ofTrials(table, line), ...ofAttempts(history ? attempts(history) : null, head?.slots ?? summary.slots, line),
    ...ofStore(verified, line), ofWaits(waiting(table), line), ofEnd(table.tally("state").get("running") ?? 0, summary, head, line),
    ofWeights(summary.best, tensors, line), ofFailures(failures(table), line),
    line(10, "Why nothing, or not more, runs is said in one sentence.", head ? Boolean(head.why) || null : null, head?.why?.text ? "said by the head" : head ? "nothing is in the way" : "no head runs"),
  ].sort((a, b) => a.promise - b.promise);
}

function ofTrials(table, line) {
  const inherited = inheritance(table);
  const ringed = rings(table);
  const ended = endings(table);
  const margin = inherited.shortest === null ? "" : `, the shortest margin ${duration(inherited.shortest)}`;
  return [
    line(1, "Each child began after its parent had ended.", inherited.early.length === 0 ? true : null, `${several(inherited.pairs, "pair")}${margin}`,
      { trials: inherited.early, but: "Sooner, which only versions of shared stores allow:" }),
    line(1, "No trial descends from itself.", ringed.length === 0, several(table.count, "trial"), { trials: ringed }),
    line(2, "Each trial that is over has an outcome.", ended.without.length === 0, `${count(ended.over)} over`, { trials: ended.without }),
  ];
}

function ofAttempts(seen, slots, line) {
  const once = "No two attempts of a trial ran at once.";
  const most = "No more ran at once than there are slots.";
  if (seen === null) return [line(3, once, null, "not read"), line(8, most, null, "not read")];
  const known = typeof slots === "number";
  const fits = known && seen.most <= slots;
  return [
    line(3, once, seen.twice.length === 0 ? true : null, several(seen.all, "attempt"),
      { trials: seen.twice, but: "One that was given up was seen to end after the next had begun; the next one counts:" }),
    line(8, most, fits ? true : null, `${count(seen.most)} at the most${known ? `, ${several(slots, "slot")}${fits ? "" : " now: there were more before"}` : ""}`),
  ];
}

function ofStore(told, line) {
  const whole = "The store is what its journal says: replayed, each table is the same.";
  const sound = "No part of the store is damaged.";
  if (!told) return [line(4, whole, null, "not run yet"), line(4, sound, null, "not run yet")];
  return [
    line(4, whole, told.ok, `${several(told.events, "event")}, ${several(told.trials, "trial")}`),
    line(4, sound, told.damage.length === 0 && !told.broken_at, told.broken_at ? `broken at ${told.broken_at}` : several(told.damage.length, "fault")),
  ];
}

const ofWaits = ({ many, holding }, line) =>
  line(5, "No request that waits has a slot.", holding.length === 0, `${several(many, "request")} ${many === 1 ? "waits" : "wait"}`, { trials: holding });

function ofEnd(running, summary, head, line) {
  const over = OVER.has(summary.status) && !head;
  const figure = over ? (running ? `nobody saw the end of ${several(running, "trial")}` : "none runs") : "it is not over";
  return line(6, "Nothing of it runs once it is over.", over && !running ? true : null, figure);
}

function ofWeights(best, tensors, line) {
  const what = "The weights of the best trial are those that it announced.";
  if (!best?.weights_digest) return line(7, what, null, best ? `trial ${best.id} announced none` : "no trial has a result yet");
  const digest = `digest ${best.weights_digest.slice(0, 12)}…`;
  if (!tensors) return line(7, what, null, `trial ${best.id}, ${digest}`);
  const ok = tensors.why ? null : true;
  return line(7, what, ok, `trial ${best.id}, ${digest}, ${ok ? `${several(tensors.count, "tensor")} by its manifest` : tensors.why.slice(0, 200)}`);
}

const ofFailures = ({ failed, after }, line) =>
  line(9, "A trial that fails ends itself only.", failed === 0 || after > 0 ? true : null,
    failed === 0 ? "none failed" : `${count(failed)} failed, ${count(after)} succeeded after the first of them`);

/** The receipt: what was checked, when, of which state of the store. */
export const receipt = ({ standing, table, lines, verified, at }) => ({
  experiment: standing.experiment.id, name: standing.experiment.name, at, trials: table.count, cursor: table.cursor,
  best: standing.experiment.best ? { trial: standing.experiment.best.id, value: standing.experiment.best.value, weights_digest: standing.experiment.best.weights_digest } : null,
  checks: lines.map(({ promise, ok, what, figure, trials }) => ({ promise, ok, what, figure, trials: trials.slice(0, 1000) })), verify: verified ?? null,
});

const WORDS = new Map([[true, "holds"], [false, "BROKEN"], [null, "not seen"]]);

/** The same as lines of text, for a paper or a mail. */
export function receiptText(told) {
  const lines = told.checks.map(({ promise, ok, what, figure, trials }) =>
    `${String(promise).padStart(2)}  ${WORDS.get(ok).padEnd(8)}  ${what} (${figure})${trials.length ? ` Trials: ${trials.slice(0, 20).join(", ")}${trials.length > 20 ? ", …" : ""}` : ""}`);
  const best = told.best ? [`best: trial ${told.best.trial}, ${number(told.best.value, 6)}${told.best.weights_digest ? `, weights ${told.best.weights_digest}` : ""}`] : [];
  return [`${told.experiment}: checked ${told.at}, ${several(told.trials, "trial")}, store at ${told.cursor}`, ...best, ...lines, ""].join("\n");
}
