/** One experiment, live: which of two answers counts. The browser's parts are stand-ins. */
import assert from "node:assert/strict";
import { test } from "node:test";

const streams = [];
const answers = []; // what is asked for, and how to answer it

globalThis.document = { hidden: false, baseURI: "http://here/", addEventListener() {}, removeEventListener() {}, getElementById: () => null };
globalThis.requestAnimationFrame = (call) => setTimeout(call, 0);
globalThis.fetch = (url) => new Promise((answer) => {
  answers.push({ path: new URL(url).pathname, with: (told) => answer({ ok: true, status: 200, text: async () => JSON.stringify(told) }) });
});
globalThis.EventSource = class {
  constructor() {
    this.takes = {};
    streams.push(this);
  }

  addEventListener(name, take) {
    this.takes[name] = take;
  }

  tell(name, told) {
    this.takes[name]({ data: JSON.stringify(told) });
  }

  close() {}
};

const { Live } = await import("../../../../dispatcher/web/static/page/live.js");
const turns = () => new Promise((go) => setTimeout(go, 5));
const asked = (end) => answers.splice(answers.findIndex((one) => one.path.endsWith(end)), 1)[0];

test("an answer that is older than what the stream has told since does not count", async () => {
  const live = new Live("e-1");
  asked("/table").with({ cursor: "1", count: 0, columns: [] });
  asked("/e-1").with({ why: "first" });
  await turns();
  assert.equal(live.standing.why, "first");
  const done = live.refresh();
  streams[0].tell("standing", { why: "third" });
  asked("/e-1").with({ why: "second" });
  await done;
  assert.equal(live.standing.why, "third");
  const again = live.refresh();
  asked("/e-1").with({ why: "fourth" });
  await again;
  assert.equal(live.standing.why, "fourth");
  live.close();
});
