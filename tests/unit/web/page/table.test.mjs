/** The table of trials, conditions over it, and what is drawn of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Table } from "../../../../dispatcher/web/static/page/table.js";
import { condition, WhereError } from "../../../../dispatcher/web/static/page/where.js";
import { gains, progress, range, telling } from "../../../../dispatcher/web/static/page/progress.js";
import { family, lanes, spans, ticks } from "../../../../dispatcher/web/static/page/forest.js";
import { endings, inheritance, rings } from "../../../../dispatcher/web/static/page/receipt.js";

const columns = (values) => Object.entries({
  trial: ["integer", "trial"], state: ["choice", "trial"], outcome: ["choice", "trial"], parent: ["integer", "trial"],
  generation: ["integer", "trial"], value: ["number", "objective"], created: ["time", "trial"], started: ["time", "trial"],
  ended: ["time", "trial"], lr: ["number", "parameter"], op: ["choice", "parameter"],
}).map(([name, [kind, group]]) => {
  const given = values[name] ?? values.trial.map(() => null);
  if (kind !== "choice") return { name, kind, group, values: given };
  const choices = [...new Set(given.filter((one) => one !== null))];
  return { name, kind, group, choices, values: given.map((one) => (one === null ? null : choices.indexOf(one))) };
});
const table = (values) => new Table({ cursor: "7", count: values.trial.length, columns: columns(values) });

const family_ = () => table({
  trial: [0, 1, 2, 3, 4], parent: [null, 0, 0, 1, null], generation: [0, 1, 1, 2, 0], state: ["ended", "ended", "ended", "running", "ended"],
  outcome: ["succeeded", "succeeded", "failed", null, "succeeded"], value: [0.5, 0.7, null, null, 0.6], started: [0, 11, 12, 25, 3], ended: [10, 20, 22, null, 9],
  created: [0, 10, 10, 20, 2], lr: [0.1, 0.01, 0.1, 0.001, 0.2], op: ["conv", "conv", "skip", "skip", "conv"],
});

test("a row is patched, a new one is added, and rows that are not named stay", () => {
  const one = family_();
  assert.deepEqual(one.patch([{ trial: 3, state: "ended", outcome: "killed", value: 0.9 }, { trial: 17, parent: 3, state: "queued", op: "new" }]), [3, 5]);
  assert.equal(one.get("outcome", 3), "killed");
  assert.equal(one.get("lr", 3), 0.001);
  assert.equal(one.get("op", 5), "new");
  assert.equal(one.get("value", 5), null);
  assert.equal(one.best("maximize"), 3);
  assert.deepEqual(one.children.get(3), [5]);
  assert.equal(one.version, 1);
});

test("thousands of rows are added one by one, and null goes back to null", () => {
  const one = table({ trial: [] });
  one.patch(Array.from({ length: 5000 }, (_, trial) => ({ trial, value: trial % 7, state: "running" })));
  assert.equal(one.count, 5000);
  assert.equal(one.get("value", 4999), 4999 % 7);
  one.patch([{ trial: 4999, value: null }]);
  assert.equal(one.get("value", 4999), null);
});

test("an order puts what has no value last, both ways, and keeps the order of equals", () => {
  const one = family_();
  assert.deepEqual([...one.order("value", true)], [1, 4, 0, 2, 3]);
  assert.deepEqual([...one.order("value", false)], [0, 4, 1, 2, 3]);
  assert.deepEqual([...one.order("op", false)], [0, 1, 4, 2, 3]);
  assert.deepEqual([...one.order("gain", true)], [1, 0, 2, 3, 4]);
  assert.deepEqual([...one.order("nothing", true, [2, 0])], [2, 0]);
});

test("whole numbers of more than 53 bits are shown as they are", () => {
  const one = family_();
  one.patch([{ trial: 0, lr: 12345678901234567890n }]);
  assert.equal(one.get("lr", 0), 12345678901234567890n);
  one.patch([{ trial: 0, lr: 1 }]);
  assert.equal(one.get("lr", 0), 1);
});

const rows = (text, one = family_()) => {
  const read = condition(text, one);
  return [...one.order("trial", false)].filter((row) => read.test(row));
};

test("a condition is true or false, never unknown", () => {
  assert.deepEqual(rows("outcome!=failed"), [0, 1, 3, 4]);
  assert.deepEqual(rows("not outcome=failed and value>=0.6"), [1, 4]);
  assert.deepEqual(rows("value<100"), [0, 1, 4]);
  assert.deepEqual(rows("value=null"), [2, 3]);
  assert.deepEqual(rows("op in (skip, 'nothing') or trial=4"), [2, 3, 4]);
  assert.deepEqual(rows("op ~ ki"), [2, 3]);
  assert.deepEqual(rows("lr<text"), []);
  assert.deepEqual(rows("parameters.lr<=1e-2"), [1, 3]);
});

test("what no column knows is left to the server", () => {
  for (const text of ["metrics.loss<1", "cpu_s>3", "width=3", "not (blocks[2].op=skip)", "lr=12345678901234567890", "op=3"]) {
    assert.equal(condition(text, family_()).local, false, text);
  }
  assert.equal(condition("lr<3 and worker=null", family_()).local, false); // no such column here
  assert.equal(condition("outcome='timed out'", family_()).local, true);
});

test("what cannot be read is told with its place", () => {
  const cases = { "lr<": 4, "lr 3": 4, "(lr<3": 1, "lr<3)": 5, "lr<3 op=4": 6, "'a": 1, "lr & 3": 4, "lr<1e999": 4, "lr<null": 3, "lr in 3": 7, and: 1 };
  for (const [text, column] of Object.entries(cases)) {
    assert.throws(() => condition(text, family_()), (error) => error instanceof WhereError && error.column === column, text);
  }
  assert.throws(() => condition("(".repeat(21) + "lr<1" + ")".repeat(21), family_()), /levels deep/);
  assert.throws(() => condition("x".repeat(2001), family_()), /too long/);
});

test("the best so far never gets worse, whichever way is up", () => {
  const { data, rows: found } = progress(family_(), "maximize", "order");
  assert.deepEqual(found, [4, 0, 1]);
  assert.deepEqual(data, [[1, 2, 3], [0.6, 0.5, 0.7], [0.6, 0.6, 0.7]]);
  assert.deepEqual(progress(family_(), "minimize", "time").data[2], [0.6, 0.5, 0.5]);
  assert.equal(range([], 1, "maximize"), null);
  const [low, high] = range([-1e9, ...Array.from({ length: 200 }, (_, at) => at / 200)], 1, "maximize");
  assert.ok(low > -1 && high >= 0.995);
});

test("equal results have equal ranks", () => {
  const one = table({ trial: [0, 1, 2, 3], value: [0.5, 0.7, 0.7, null] });
  assert.deepEqual([...one.ranks("maximize")].slice(0, 4), [0, 1, 1, NaN]);
  assert.deepEqual([...one.ranks("minimize")].slice(0, 4), [1, 0.5, 0.5, NaN]);
});

test("gains are medians by change, of changes that were made thrice", () => {
  const trial = [0, 1, 2, 3, 4];
  const one = table({ trial, parent: [null, 0, 0, 0, 0], value: [0.5, 0.6, 0.7, 0.8, 0.1], lr: [1, 2, 2, 3, 0.5], op: ["a", "a", "a", "a", "a"] });
  assert.deepEqual(gains(one, "maximize").map((gain) => [gain.name, gain.direction, gain.count, Number(gain.gain.toFixed(3))]), [["lr", "↑", 3, 0.2]]);
  assert.ok(gains(one, "minimize")[0].gain < 0);
  assert.deepEqual(telling(one), ["lr"]);
});

test("each trial has a lane, heirs go on in their parent's, and rings of parents do no harm", () => {
  const one = family_();
  const laid = lanes(one);
  assert.deepEqual([...laid.lane], [0, 0, 1, 0, 2]);
  assert.equal(laid.lanes, 3);
  assert.deepEqual([...lanes(one, family(one, 3)).lane], [0, 0, -1, 0, -1]);
  const ring = table({ trial: [0, 1, 2], parent: [1, 0, 1] });
  assert.ok([...lanes(ring).lane].every((lane) => lane >= 0));
  assert.equal(family(ring, 0).length, 3);
  assert.deepEqual(ring.line(2).length, 3);
});

test("no two bars of a lane are one upon the other", () => {
  const trials = 3000;
  const draw = (seed) => () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const next = draw(7);
  const values = { trial: [], parent: [], started: [], ended: [] };
  for (let trial = 0; trial < trials; trial += 1) {
    const parent = trial > 5 && next() > 0.05 ? Math.floor(next() * trial) : null;
    const begin = parent === null ? trial : Math.max(trial, values.ended[parent]);
    values.trial.push(trial);
    values.parent.push(parent);
    values.started.push(begin);
    values.ended.push(begin + next() * 20);
  }
  const one = table(values);
  const { lane } = lanes(one);
  const { from, to } = spans(one, "time", 1e9);
  const ends = new Map();
  [...one.order("started", false)].forEach((row) => {
    assert.ok((ends.get(lane[row]) ?? -Infinity) <= from[row]);
    ends.set(lane[row], to[row]);
  });
});

test("what runs lasts until now, and generations need no times", () => {
  const { from, to, high } = spans(family_(), "time", 100);
  assert.deepEqual([from[3], to[3], high], [25, 100, 100]);
  assert.deepEqual([...spans(family_(), "generation", 0).from], [0, 1, 1, 2, 0]);
  assert.deepEqual(ticks(0, 100, 5), [0, 20, 40, 60, 80, 100]);
  assert.ok(ticks(0, 1e12, 5, true).length <= 50);
  assert.deepEqual(ticks(5, 5, 5), []);
});

test("the receipt counts pairs, and finds what began too soon, descends from itself, or has no outcome", () => {
  assert.deepEqual(inheritance(family_()), { pairs: 3, early: [], shortest: 1, nearest: 1 });
  const bad = table({ trial: [0, 1, 2, 3], parent: [null, 0, 3, 2], started: [0, 5, 1, 1], ended: [10, 20, 2, 2], state: ["ended", "ended", "running", "running"], outcome: ["succeeded", null, null, null] });
  assert.deepEqual(inheritance(bad).early, [1, 2, 3]);
  assert.equal(rings(bad).length, 1);
  assert.deepEqual(rings(family_()), []);
  assert.deepEqual(endings(bad), { over: 2, without: [1], silent: [0] });
});
