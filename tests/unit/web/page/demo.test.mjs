/** Asking a model: what a form begins with, what is drawn, what an answer holds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begun, encoded, missing, scored } from "../../../../dispatcher/web/static/page/demo.js";
import { inked } from "../../../../dispatcher/web/static/page/drawing.js";
import { COMMANDS } from "../../../../dispatcher/web/static/page/commands.js";

const field = (name, kind, more = {}) => ({ name, kind, default: null, ...more });

test("a form begins with what is declared, and says what is missing", () => {
  const fields = [field("n", "number"), field("m", "number", { default: 0 }), field("t", "text"), field("d", "drawing")];
  assert.deepEqual(begun(fields), { m: 0, t: "" });
  assert.deepEqual(missing(fields, begun(fields)), ["n", "d"]);
  assert.deepEqual(missing(fields, { n: 1, m: 0, t: "", d: null }), ["d"]);
});

test("ink is the mean of each cell", () => {
  const pixels = new Uint8ClampedArray(4 * 4 * 4).fill(255); // 4 × 4 pixels of white paper
  for (const at of [0, 1, 4, 5, 2]) pixels.fill(0, 4 * at, 4 * at + 3); // the first cell, and a quarter of the second
  assert.deepEqual(inked(pixels, 4, 2, 2, 2), [[1, 0.25], [0, 0]]);
});

test("scores are those of an answer that has them, the highest first", () => {
  assert.deepEqual(scored({ answer: 7, scores: { a: 0.1, b: 0.9 }, why: 1 }), { answer: 7, scores: [["b", 0.9], ["a", 0.1]], rest: { why: 1 } });
  for (const other of [null, 3, [1], {}, { answer: 1, scores: {} }, { answer: 1, scores: { a: "NaN" } }, { answer: 1, scores: [1] }, { scores: { a: 1 } }]) assert.equal(scored(other), null);
});

test("bytes are base64, also of many", () => {
  assert.equal(encoded(new Uint8Array([0, 1, 255])), "AAH/");
  assert.equal(atob(encoded(new Uint8Array(100_000).fill(7))).length, 100_000);
});

test("the command says the same", () => {
  const fields = [field("n", "number"), field("t", "text"), field("d", "drawing")];
  assert.equal(COMMANDS.infer("e-1", 3, fields, { n: 0.5, t: "a b" }), "bequeath infer -e e-1 3 --number n=0.5 --text 't=a b' --image d=FILE");
  assert.equal(COMMANDS.inferJson("e-1", 3, '{"x": 1}'), "bequeath infer -e e-1 3 '{\"x\": 1}'");
});
