/** Texts, numbers, addresses, commands, and lines of logs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { coloured, brief, visible } from "../../../../dispatcher/web/static/page/safe.js";
import { bytes, duration, number, roughly, several, signed, value } from "../../../../dispatcher/web/static/page/format.js";
import { parse, write } from "../../../../dispatcher/web/static/page/json.js";
import { differences, flatten } from "../../../../dispatcher/web/static/page/words.js";
import { quoted } from "../../../../dispatcher/web/static/page/commands.js";
import { link, readPath, readTrials, trialLink, writeQuery } from "../../../../dispatcher/web/static/page/route.js";
import { pieces } from "../../../../dispatcher/web/static/page/why.js";
import { chain, groups } from "../../../../dispatcher/web/static/page/waiting.js";

test("what cannot be seen is shown by its name", () => {
  assert.equal(visible("a\u202eb\u0000\u001b[1m\u200b\ufeff"), "a⟨U+202E⟩b⟨U+0000⟩⟨ESC⟩[1m⟨U+200B⟩⟨U+FEFF⟩");
  assert.equal(visible("\ud800x"), "\ufffdx");
  assert.equal(visible("😀 line\n\ttab"), "😀 line\n\ttab");
  assert.equal(brief("x".repeat(5_000_000), 10), `${"x".repeat(10)}…`);
});

test("colours of a terminal become classes, and every other escape goes", () => {
  const { pieces, after } = coloured("a\u001b[1;31mred\u001b[39mbold\u001b[0m\u001b[2J\u001b]0;title\u0007z\u001b[32m");
  assert.deepEqual(pieces, [{ text: "a", style: "" }, { text: "red", style: "ansi-bold ansi-red" }, { text: "bold", style: "ansi-bold" }, { text: "z", style: "" }]);
  assert.equal(after, "ansi-green");
  assert.deepEqual(coloured("x", after).pieces, [{ text: "x", style: "ansi-green" }]);
  assert.equal(coloured("\u001b[38;5;9mx").pieces[0].style, "");
});

test("numbers are short, and what is none is a dash", () => {
  const cases = [[0.97312345, "0.97312"], [2.6e-4, "2.6e-4"], [12345, "12,345"], [-0.5, "−0.5"], [NaN, "–"], [null, "–"], [Infinity, "∞"], [0, "0"], [1e20, "1e20"], [12345678901234567890n, "12345678901234567890"]];
  for (const [given, wanted] of cases) assert.equal(number(given), wanted);
  assert.match(number(10n ** 60n), /61 digits/);
  assert.equal(signed(0.0021), "+0.0021");
  assert.deepEqual([0.041, 3.21, 59.6, 605, 3700, 100000].map(duration), ["41 ms", "3.2 s", "1 m 00 s", "10 m 05 s", "1 h 01 m", "1 d 3 h"]);
  assert.deepEqual([duration(-1), duration(NaN), roughly(2580), bytes(4_200_000), bytes(null)], ["–", "–", "43 m", "4.2 MB", "–"]);
  assert.deepEqual([several(1, "child", "children"), several(1204, "trial")], ["1 child", "1,204 trials"]);
  assert.equal(value({ a: [1, "\u202e"] }), '{"a":[1, "⟨U+202E⟩"]}');
});

test("JSON keeps the digits of whole numbers", () => {
  const text = '{"a":123456789012345678901234567890,"b":[1,0.12345678901234567890],"c":"12345678901234567890"}';
  const read = parse(text);
  if (typeof read.a === "bigint") assert.equal(read.a, 123456789012345678901234567890n); // since node 21
  assert.equal(read.c, "12345678901234567890");
  assert.equal(write({ a: 123456789012345678901234567890n, b: [null, undefined] }), '{"a":123456789012345678901234567890,"b":[null, null]}');
  assert.deepEqual(JSON.parse(write({ a: { b: [{ c: 1 }] }, d: [] , e: {} }, 2)), { a: { b: [{ c: 1 }] }, d: [], e: {} });
});

test("names that objects have by themselves are names like others", () => {
  const after = parse('{"constructor": 5, "__proto__": 7, "toString": {"x": 1}}');
  assert.deepEqual(differences({}, after).map((one) => one.words).sort(), ["__proto__ + 7", "constructor + 5", "toString.x + 1"]);
  assert.equal({}.x, undefined);
});

test("what a child changed is told in words, entries of lists each by itself", () => {
  const words = (before, after) => differences(before, after).map((one) => one.words);
  assert.deepEqual(words({ lr: 0.1, w: 1 }, { lr: 0.00123456, w: 1 }), ["lr  0.1 → 0.001235"]);
  assert.deepEqual(words({ a: { b: 1 }, x: 1 }, { a: { b: 2 }, y: "n" }), ["a.b  1 → 2", "y + n", "x − 1"]);
  assert.deepEqual(words({ blocks: [{ op: "a", k: 1 }, { op: "b", k: 2 }] }, { blocks: [{ op: "a", k: 1 }, { op: "c", k: 2 }, { op: "d", k: 3 }] }),
    ["blocks[1].op  b → c", 'blocks + {"op":"d","k":3}']);
  assert.deepEqual(words({ a: { x: 1, y: 2 } }, { a: { y: 2, x: 1 } }), []);
  assert.deepEqual({ ...flatten(3) }, { value: 3 });
});

test("a shell gets the very words", () => {
  assert.deepEqual(["plain-1", "a b", "it's", "$(rm)", ""].map(quoted), ["plain-1", "'a b'", "'it'\\''s'", "'$(rm)'", "''"]);
});

test("addresses are read as they are written", () => {
  assert.deepEqual(readPath("e/a%2Fb/t/17"), { page: "trial", experiment: "a/b", trial: 17 });
  assert.deepEqual(["", "leaderboard", "e/x", "e/x/lineage", "e/x/t/abc", "e/x/nothing", "z", "e/%E0"].map((path) => readPath(path).page),
    ["experiments", "leaderboard", "overview", "lineage", "nowhere", "nowhere", "nowhere", "overview"]);
  assert.equal(link("a/b ü", "trials", { where: "lr<0.1 & x", empty: "" }), "e/a%2Fb%20%C3%BC/trials?where=lr%3C0.1+%26+x");
  assert.equal(readPath(trialLink("a/b ü", 3)).experiment, "a/b ü");
  assert.equal(new URLSearchParams(writeQuery({ where: "a+b c,d" })).get("where"), "a+b c,d");
  assert.deepEqual(readTrials("1,2,2,x,-3,4.5,99999999999999999999", 8), [1, 2]);
});

test("a sentence of the head names trials as links, and nothing else", () => {
  const found = pieces("2 slots: trials 91, 97 and 3 failed; request 5 waits for 0 (running); 4 trials wait for 12 s");
  assert.deepEqual(found.filter((one) => one.trial !== undefined).map((one) => one.trial), [91, 97, 3, 5, 0]);
  assert.equal(found.map((one) => one.text).join(""), "2 slots: trials 91, 97 and 3 failed; request 5 waits for 0 (running); 4 trials wait for 12 s");
});

test("who waits for whom is one line a parent, down to what runs", () => {
  const waiting = [
    { trial: 5, mode: "all", place: "", for: [1], for_s: 3 }, { trial: 6, mode: "all", place: "", for: [1], for_s: 9 },
    { trial: 7, mode: "all", place: "", for: [5], for_s: 1 }, { trial: 8, mode: "own", place: "tuner.py:3", for: [], for_s: 41 },
  ];
  assert.deepEqual(groups(waiting).map((one) => [one.parents, one.waiters.map((each) => each.trial), one.longest]), [[[1], [6, 5], 9], [[], [8], 41], [[5], [7], 1]]);
  assert.deepEqual(chain(5, waiting), [5, 1]);
  assert.deepEqual(chain(1, [{ trial: 1, for: [2] }, { trial: 2, for: [1] }]), [1, 2]);
});
