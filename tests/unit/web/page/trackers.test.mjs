/** What the overview says of trackers: how far each is, and what is in its way, as text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { lag, Trackers } from "../../../../dispatcher/web/static/page/trackers.js";

/** The text of what is drawn, and the elements that a text of a tracker may have become. */
function drawn(node, found = { text: "", kinds: new Set() }) {
  if (Array.isArray(node)) node.forEach((one) => drawn(one, found));
  else if (typeof node === "string" || typeof node === "number") found.text += node;
  else if (typeof node?.type === "function") drawn(node.type(node.props), found);
  else if (node?.props) {
    found.kinds.add(node.type);
    drawn(node.props.children, found);
  }
  return found;
}

const NOW = 1_000_000;
const THERE = { name: "tensorboard", kind: "tensorboard", target: "/home/me/tb", behind: 0, taken: 60, heard_at: NOW - 5, error: "" };
const AWAY = { name: "ours", kind: "mlflow", target: "http://127.0.0.1:5000/<img>", behind: 6, taken: 0, heard_at: null, error: "it does not answer: <i>\u202e" };

test("how far a tracker is", () => {
  assert.equal(lag(THERE), "up to date, 60 trials");
  assert.equal(lag(AWAY), "6 trials behind");
  assert.equal(lag({ behind: 1, taken: 5 }), "1 trial behind");
});

test("each tracker is named with its lag, its target and its error, all of them text", () => {
  const { text, kinds } = drawn(Trackers({ sinks: [THERE, AWAY], now: NOW }));
  for (const part of ["tensorboard", "✓ up to date, 60 trials", "5 s ago", "/home/me/tb", "mlflow", "⚠ 6 trials behind", "/<img>", "<i>⟨U+202E⟩"]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  assert.ok(!kinds.has("img") && !kinds.has("i"));
});

test("a search that feeds none has no panel", () => {
  assert.equal(Trackers({ sinks: [] }), null);
  assert.equal(Trackers({ sinks: undefined }), null);
});
