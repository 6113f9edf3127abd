/**
 * One experiment, live: its table, its standing and its stream. Pages share it; it ends when nobody
 * looks. Where no stream passes, the same changes are asked for, one request at a time.
 */
import { address, get, of } from "./api.js";
import { exported } from "./exported.js";
import { Table } from "./table.js";

const RETRY_S = [1, 1, 2, 3, 5];
/** Streams that failed before a single event came: from then on we ask. */
const STREAMS_TRIED = 2;
const ASK_WAIT_S = 20;

export class Live {
  constructor(experiment) {
    this.experiment = experiment;
    this.table = null;
    this.standing = null;
    this.stood = 0; // how often its standing was told
    this.error = null;
    this.line = "connecting"; // connecting, live, asking, away
    this.awaySince = null;
    this.headGone = null; // seconds since the epoch
    this.heardAt = 0;
    this.listeners = new Set();
    this.failures = 0;
    this.closed = false;
    this.changedTrials = new Set();
    this.onVisible = () => this.#visible();
    document.addEventListener("visibilitychange", this.onVisible);
    this.#begin();
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  #tell() {
    // One picture a frame, however many events came; a hidden page draws none and needs none.
    if (this.pending) return;
    this.pending = true;
    const tell = () => {
      this.pending = false;
      this.listeners.forEach((listener) => listener(this));
    };
    if (document.hidden) setTimeout(tell, 250);
    else requestAnimationFrame(tell);
  }

  async #begin() {
    if (this.closed) return;
    try {
      const [standing, table] = await Promise.all([
        get(of(this.experiment)), get(of(this.experiment, "/table")),
      ]);
      if (this.closed) return;
      this.standing = standing;
      this.table = new Table(table);
      this.error = null;
      this.failures = 0;
      this.line = exported ? "file" : "live";
      if (exported) this.table.asOf = this.heardAt = (await get("/session")).saved_at;
      this.#tell();
      this.#follow();
    } catch (error) {
      this.#failed(error, () => this.#begin());
    }
  }

  #failed(error, again) {
    if (this.closed) return;
    this.error = error;
    if (error.gone || error.status >= 500 || error.status === 429) {
      this.line = "away";
      this.awaySince ??= Date.now() / 1000;
      const wait = error.retryAfter ?? RETRY_S[Math.min(this.failures, RETRY_S.length - 1)];
      this.failures += 1;
      clearTimeout(this.timer);
      this.timer = setTimeout(again, wait * 1000);
    } else this.line = "refused";
    this.#tell();
  }

  #follow() {
    if (this.closed || document.hidden || exported) return;
    if (typeof EventSource !== "function" || this.streamsTried >= STREAMS_TRIED) {
      this.#ask();
      return;
    }
    const path = of(this.experiment, `/events?after=${encodeURIComponent(this.table.cursor)}`);
    const stream = new EventSource(address(path));
    this.stream = stream;
    stream.onopen = () => this.#heard();
    const on = (name, take) => stream.addEventListener(name, (event) => {
      if (this.closed || this.stream !== stream) return;
      this.streamsTried = 0;
      this.#heard();
      take(event.data ? JSON.parse(event.data) : {});
      this.#tell();
    });
    on("changes", (told) => this.#changes(told));
    on("standing", (told) => this.#stands(told));
    on("gone", (told) => {
      if (told.deleted) this.#ended(told.error);
      else this.headGone = told.since ?? Date.now() / 1000;
    });
    on("back", () => {
      this.headGone = null;
    });
    stream.onerror = () => {
      if (this.closed || this.stream !== stream) return;
      stream.close();
      this.stream = null;
      this.streamsTried = (this.streamsTried ?? 0) + 1;
      this.line = "away";
      this.awaySince ??= Date.now() / 1000;
      this.#tell();
      const wait = RETRY_S[Math.min(this.failures, RETRY_S.length - 1)];
      this.failures += 1;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.#follow(), wait * 1000);
    };
  }

  /** The experiment is no more: what is shown goes, and nothing is asked again. */
  #ended(error) {
    this.stream?.close();
    this.stream = null;
    this.headGone = null; // nobody misses it
    this.error = error ?? { message: "the experiment was deleted" };
    this.line = "refused";
  }

  #heard() {
    this.heardAt = Date.now() / 1000;
    this.line = "live";
    this.awaySince = null;
    this.failures = 0;
    this.error = null;
    this.#tell();
  }

  /** The fall-back: the same changes by long questions, each begun after the last was answered. */
  async #ask() {
    if (this.asks) return;
    this.asks = true;
    while (!this.closed && !document.hidden) {
      try {
        const cursor = encodeURIComponent(this.table.cursor);
        const told = await get(of(this.experiment, `/changes?after=${cursor}&wait=${ASK_WAIT_S}`));
        if (this.closed) return;
        this.#heard();
        this.line = "asking";
        if (told.anew || told.trials.length) this.#changes(told);
        if (!told.more) this.#stands(await get(of(this.experiment)));
        this.#tell();
      } catch (error) {
        this.asks = false;
        if (error.gone) this.streamsTried = 0; // it was the server, not the way
        this.#failed(error, () => this.#follow());
        return;
      }
    }
    this.asks = false;
  }

  #stands(told) {
    this.standing = told;
    this.stood += 1;
    if (told.head) this.headGone = null;
  }

  #changes(told) {
    if (told.anew) {
      this.#anew();
      return;
    }
    const rows = this.table.patch(told.trials);
    rows.forEach((row) => this.changedTrials.add(row));
    if (told.cursor) this.table.cursor = told.cursor;
  }

  async #anew() {
    if (this.reading) return;
    this.reading = true;
    try {
      const version = this.table.version;
      this.table = new Table(await get(of(this.experiment, "/table")));
      this.table.version = version + 1;
      this.#restart();
    } catch (error) {
      this.#failed(error, () => this.#anew());
    } finally {
      this.reading = false;
    }
    this.#tell();
  }

  #restart() {
    this.stream?.close();
    this.stream = null;
    this.#follow();
  }

  /** Asks at once, after a change by click. What the stream has told meanwhile is newer. */
  async refresh() {
    const stood = this.stood;
    try {
      const told = await get(of(this.experiment));
      if (this.stood !== stood) return;
      this.#stands(told);
      this.#tell();
    } catch { /* the stream will tell */ }
  }

  #visible() {
    if (document.hidden) {
      this.stream?.close(); // a browser has six connections for all of its pages
      this.stream = null;
    } else if (this.table && !this.stream && this.line !== "refused") {
      clearTimeout(this.timer);
      this.#follow();
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.stream?.close();
    document.removeEventListener("visibilitychange", this.onVisible);
  }
}
