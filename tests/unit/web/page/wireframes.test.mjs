/** Ways out of a cause, hosts in sentences, small curves, bands, slots, shares. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { joined } from "../../../../dispatcher/web/static/page/curves.js";
import { COMMANDS } from "../../../../dispatcher/web/static/page/commands.js";
import { mends } from "../../../../dispatcher/web/static/page/mending.js";
import { readPath } from "../../../../dispatcher/web/static/page/route.js";
import { looks, pixels, shares } from "../../../../dispatcher/web/static/page/slot_shares.js";
import { sparkPath } from "../../../../dispatcher/web/static/page/sparks.js";
import { causeInWords, pieces } from "../../../../dispatcher/web/static/page/why.js";

const head = (cause, text = "", more = {}) => ({ head: { why: { cause, text }, lookahead: 64, max_trials: 100, ...more }, experiment: { status: "running" } });
const words = (standing) => mends(standing).map((one) => one.word);

test("hosts in a sentence are links, whole names only", () => {
  const text = "1 trial is queued: ssh/gpu1 is left out for 42 s since trials 91 and 97 failed there; ssh/gpu12 and local.";
  const found = pieces(text, ["local", "ssh/gpu1", "ssh/gpu12", "gpu"]);
  assert.equal(found.map((one) => one.text).join(""), text);
  assert.deepEqual(found.filter((one) => one.host).map((one) => one.host), ["ssh/gpu1", "ssh/gpu12", "local"]);
  assert.deepEqual(found.filter((one) => one.trial !== undefined).map((one) => one.trial), [91, 97]);
  assert.deepEqual(pieces("nothing", ["x"]), [{ text: "nothing" }]);
  assert.deepEqual(pieces("", ["x"]), []);
});

test("each cause has its ways out, and a change has its command", () => {
  const [raise] = mends(head("LOOKAHEAD_FULL"));
  assert.deepEqual([raise.dialog, raise.start], ["limits", { key: "lookahead", value: "128" }]);
  assert.deepEqual(mends(head("ALL_PROPOSED"))[0].start, { key: "maxTrialNumber", value: "200" });
  assert.deepEqual(words(head("WORKER_QUARANTINED", "1 trial is queued: gpu2 is left out since trials 91 and 97 failed there")), ["log of 97", "hosts"]);
  assert.deepEqual(words(head("DISK_LOW")), ["free space…", "hosts"]);
  assert.deepEqual(words(head("NO_FREE_GPU")), ["hosts"]);
  assert.deepEqual(words(head("TRIALS_FAIL", "stopping: 3 trials still run")), ["trials that failed"]);
  assert.deepEqual(words(head("ALL_SLOTS_BUSY", "all 64 slots are busy")), []);
  assert.deepEqual(words({ head: null, experiment: { status: "interrupted" } }), ["resume…"]);
  assert.deepEqual(words({ head: null, experiment: { status: "completed", max_trials: 10 } }), ["more trials…", "resume…"]);
  assert.deepEqual(words({ head: null, experiment: { status: "running" } }), []);
  assert.equal(COMMANDS.sweep("evo-k3x"), "bequeath weights gc evo-k3x");
});

test("a small curve lies in its box, and one point is none", () => {
  const at = [...sparkPath([1, 3, 2], 20, 10).matchAll(/[ML]([\d.]+) ([\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
  assert.deepEqual(at, [[1, 8], [10, 2], [19, 5]]);
  assert.equal(sparkPath([1]), "");
  assert.equal(sparkPath([]), "");
  assert.ok(!/NaN/.test(sparkPath([2, 2, 2])));
});

test("bands are three curves behind the others", () => {
  const best = [{ trial: 7, steps: [1, 3], values: [0.1, 0.3] }];
  const bands = { used: 9, steps: [1, 2], low: [0, 0], middle: [1, 1], high: [2, 3] };
  const found = joined(best, bands);
  assert.deepEqual(found.data, [[1, 2, 3], [2, 3, null], [1, 1, null], [0, 0, null], [0.1, null, 0.3]]);
  assert.deepEqual(found.bands, [{ series: [1, 3], fill: "grid" }]);
  assert.deepEqual(found.series.map((one) => one.label), ["90 % below", "median", "10 % below", "7"]);
  assert.equal(joined(best, { steps: [] }).bands, null);
  assert.equal(joined(best).series.length, 1);
});

test("slots in pixels are means, and shares are told in words", () => {
  const data = { busy: [0, 2, 4, 4], slots: [4, 4, 4, 4], busy_share: 0.625, idle: [{ cause: "NO_FREE_GPU", share: 0.25 }, { cause: "TUNER_BUSY", share: 0.125 }] };
  assert.deepEqual(pixels(data, 2), { busy: [1, 4], slots: [4, 4] });
  assert.deepEqual(pixels(data, 8).busy, [0, 0, 2, 2, 4, 4, 4, 4]);
  assert.equal(shares(data), "62.5 % busy · idle because: no free GPU 25 %, tuner busy 13 %");
  assert.equal(shares({ busy_share: null }), "");
  const all = [...Array(6)].map((_, at) => ({ cause: `C${at}` }));
  const patterns = [...looks(all).values()].map(([, pattern]) => pattern);
  assert.equal(new Set(patterns.slice(0, 4)).size, 4);
  assert.equal(causeInWords("gpu2 is away"), "gpu2 is away");
});

test("the settings have an address, and each change its command", () => {
  assert.deepEqual(readPath("settings"), { page: "settings" });
  assert.deepEqual(readPath("settings/x"), { page: "nowhere" });
  assert.equal(COMMANDS.share("ann", 7, false), "bequeath web --share ann");
  assert.equal(COMMANDS.share("ann", 2, true), "bequeath web --share ann --days 2 --with-logs");
  assert.equal(COMMANDS.revoke("ann"), "bequeath web --revoke ann");
});
