/** The receipt: each of the ten promises over one run, and what it says where one does not hold. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Table } from "../../../../dispatcher/web/static/page/table.js";
import { attempts, failures, promises, receipt, receiptText, waiting } from "../../../../dispatcher/web/static/page/promises.js";

const KINDS = { state: "choice", outcome: "choice", created: "time", started: "time", ended: "time" };
const columns = (values) => Object.entries(values).map(([name, given]) => {
  const kind = KINDS[name] ?? "integer";
  if (kind !== "choice") return { name, kind, group: "trial", values: given };
  const choices = [...new Set(given.filter((one) => one !== null))];
  return { name, kind, group: "trial", choices, values: given.map((one) => (one === null ? null : choices.indexOf(one))) };
});
const table = (values) => new Table({ cursor: "a.7", count: values.trial.length, columns: columns(values) });

const SOUND = {
  trial: [0, 1, 2, 3], parent: [null, 0, 0, 1], value: [5, null, 7, null], started: [0, 11, 12, null], ended: [10, 20, 22, null],
  state: ["ended", "ended", "ended", "blocked"], outcome: ["succeeded", "failed", "succeeded", null], attempts: [1, 2, 1, 0],
};
const LIVES = { spans: { trial: [0, 1, 1, 2], began: [0, 11, 15, 12], ended: [10, 14, 20, 22] } };
const BEST = { id: 2, value: 7, weights_digest: "9f3c".repeat(16) };
const standing = (more = {}, head = null) => ({ experiment: { id: "digits-k3x9pa", name: "digits", status: "completed", slots: 2, best: BEST, ...more }, head });
const VERIFIED = { ok: true, events: 40, trials: 4, damage: [], broken_at: "", differences: [], mended: "" };
const seen = (more = {}) => ({ table: table(SOUND), standing: standing(), history: LIVES, tensors: { why: "", count: 3 }, verified: VERIFIED, ...more });
const of = (given) => new Map(promises(given).map((one) => [one.what, one]));
const ok = (given, part) => [...of(given)].find(([what]) => what.includes(part))[1].ok;

test("each of the ten promises has a line, in order, and a sound run breaks none", () => {
  const lines = promises(seen());
  assert.deepEqual([...new Set(lines.map((one) => one.promise))], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  assert.deepEqual(lines.filter((one) => one.ok !== true).map((one) => one.promise), [10], "no head is there to be asked");
  assert.ok(lines.every((one) => one.figure));
});

test("nothing is said to hold that was not looked at", () => {
  const found = promises(seen({ history: null, tensors: null, verified: null }));
  assert.deepEqual(found.filter((one) => one.ok === null).map((one) => one.promise), [3, 4, 4, 7, 8, 10]);
  assert.equal(ok(seen({ standing: standing({ status: "running" }, { slots: 2, why: { text: "all is busy" } }) }), "once it is over"), null);
  assert.equal(ok(seen({ standing: standing({ status: "running" }, { slots: 2, why: { text: "all is busy" } }) }), "one sentence"), true);
  assert.equal(ok(seen({ standing: standing({ best: { ...BEST, weights_digest: null } }) }), "weights"), null);
  assert.equal(ok(seen({ tensors: { why: "its manifest is not the one that was announced" } }), "weights"), null);
});

test("what does not hold is named with its trials", () => {
  const bad = { ...SOUND, parent: [2, null, 0, 1], outcome: ["succeeded", null, "succeeded", null], attempts: [1, 2, 1, 1] };
  const found = of(seen({ table: table(bad), verified: { ...VERIFIED, ok: false, broken_at: "row 12" } }));
  const at = (part) => [...found.values()].find((one) => one.what.includes(part));
  assert.deepEqual([at("descends").ok, at("descends").trials.length], [false, 1]);
  assert.deepEqual([at("outcome").ok, at("outcome").trials], [false, [1]]);
  assert.deepEqual([at("has a slot").ok, at("has a slot").trials], [false, [3]]);
  assert.deepEqual([at("journal").ok, at("damaged").ok, at("damaged").figure], [false, false, "broken at row 12"]);
});

test("attempts of one trial that overlap are found, and the most at once are counted", () => {
  assert.deepEqual(attempts(LIVES), { all: 4, twice: [], most: 2 });
  const spans = { trial: [1, 1, 2, 2], began: [11, 15, 0, 5], ended: [16, 20, 5, null] };
  assert.deepEqual(attempts({ spans }), { all: 4, twice: [1], most: 3 });
  assert.equal(ok(seen({ history: { spans } }), "ran at once."), null, "one that was given up may live on; it counts nothing");
  assert.equal(ok(seen({ history: { spans } }), "than there are slots"), null, "there may have been more slots before");
  assert.equal(attempts({ spans: { trial: [1, 2], began: [0, 10], ended: [10, 20] } }).most, 1, "a slot goes from one to the next");
});

test("those who wait and those who failed are counted", () => {
  assert.deepEqual(waiting(table(SOUND)), { many: 1, holding: [] });
  assert.deepEqual(failures(table(SOUND)), { failed: 1, after: 1 });
  const all = { ...SOUND, outcome: ["failed", "failed", "failed", null] };
  assert.equal(ok(seen({ table: table(all) }), "ends itself only"), null);
});

test("the receipt is JSON, and text for a paper", () => {
  const given = seen();
  const told = receipt({ standing: given.standing, table: given.table, lines: promises(given), verified: VERIFIED, at: "2026-11-28T10:00:00Z" });
  assert.equal(told.best.weights_digest, BEST.weights_digest);
  assert.equal(told.checks.length, 12);
  const text = receiptText(told);
  assert.ok(text.startsWith("digits-k3x9pa: checked 2026-11-28T10:00:00Z, 4 trials, store at a.7\nbest: trial 2, 7, weights 9f3c"));
  assert.match(text, /\n 1 {2}holds {5}Each child began after its parent had ended\. \(2 pairs, the shortest margin 1\.0 s\)\n/);
  assert.match(text, /\n10 {2}not seen /);
});
