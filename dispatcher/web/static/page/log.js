/** The log of an attempt, live, cut to what a page can hold; the whole is a link away. */
import { html, useEffect, useRef, useState } from "./ui.js";
import { address, failure, of } from "./api.js";
import { exported, savedLog } from "./exported.js";
import { coloured } from "./safe.js";
import { Problem } from "./widgets.js";
import { bytes, count, several } from "./format.js";

const TAIL = 65_536; // bytes read at first, from the end
const MOST_LINES = 2000;
const MOST_LINE = 2000; // characters of one line that are shown

const path = (experiment, trial, stream, query) =>
  of(experiment, `/trials/${trial}/log/${stream}?${new URLSearchParams(query)}`);

/**
 * Lines of a log as they come in pieces; the last may be unfinished. Pure.
 * Lines beyond the most that are kept go, from the first on; of a long line the beginning stays.
 */
export class Lines {
  constructor() {
    this.all = [];
    this.open = { text: "", length: 0 };
    this.gone = 0;
  }

  add(text) {
    const parts = text.split("\n");
    parts.forEach((part, at) => {
      const clean = part.endsWith("\r") && at < parts.length - 1 ? part.slice(0, -1) : part;
      if (this.open.text.length < MOST_LINE) this.open.text += clean.slice(0, MOST_LINE - this.open.text.length);
      this.open.length += clean.length;
      if (at < parts.length - 1) {
        this.all.push(this.open);
        this.open = { text: "", length: 0 };
      }
    });
    if (this.all.length > MOST_LINES) {
      this.gone += this.all.length - MOST_LINES;
      this.all.splice(0, this.all.length - MOST_LINES);
    }
  }

  get shown() {
    return this.open.length ? [...this.all, this.open] : this.all;
  }
}

/** The end of a log, as the server has it. Raises ApiError. */
async function tail(where) {
  const answer = await fetch(address(where), { credentials: "same-origin" });
  const text = await answer.text();
  if (!answer.ok) throw failure(answer, text);
  const told = (name) => Number(answer.headers.get(name)) || 0;
  return { text, begin: told("Bequeath-From"), size: told("Bequeath-Size") };
}

async function fromFile(trial, stream) {
  const told = await savedLog(trial, stream);
  if (told === null) throw Object.assign(new Error("this log is not in the file that was saved"), { status: 404 });
  return told;
}

/** @param {{experiment: string, trial: number, attempt?: number, running: boolean, height?: string}} props */
export function Log({ experiment, trial, attempt, running, initial = "stdout", label = "log" }) {
  const [stream, setStream] = useState(initial);
  const [follow, setFollow] = useState(true);
  const [state, setState] = useState({ lines: null });
  const frame = useRef(null);
  const query = attempt ? { attempt } : {};

  useEffect(() => {
    let ended = false;
    let source = null;
    const lines = new Lines();
    const seen = (more) => ended || setState((before) => ({ ...before, lines, stamp: (before.stamp ?? 0) + 1, ...more }));
    const read = async () => {
      let next = 0;
      try {
        const { text, begin, size } = exported ? await fromFile(trial, stream) : await tail(path(experiment, trial, stream, { ...query, from: -TAIL, limit: TAIL }));
        // The first line may have begun before: it is left out.
        lines.add(begin > 0 ? text.slice(text.indexOf("\n") + 1 || 0) : text);
        next = begin + new TextEncoder().encode(text).length;
        seen({ begin, size, error: null });
      } catch (error) {
        if (!ended) setState({ lines: null, error: error.status === undefined ? { message: "the server of this page does not answer" } : error });
        return;
      }
      if (ended || !running || !follow || exported) return;
      source = new EventSource(address(path(experiment, trial, stream, { ...query, from: next, follow: 1 })));
      source.addEventListener("text", (event) => {
        const told = JSON.parse(event.data);
        if (told.from + told.text.length < next) return;
        lines.add(told.text);
        seen({});
      });
      source.addEventListener("end", () => source.close());
      source.onerror = () => source.close();
    };
    setState({ lines: null });
    read();
    return () => {
      ended = true;
      source?.close();
    };
  }, [experiment, trial, attempt, stream, running, follow]);

  useEffect(() => {
    if (follow && frame.current) frame.current.scrollTop = frame.current.scrollHeight;
  }, [state.stamp, follow]);

  const { lines, begin, size, error } = state;
  const all = address(path(experiment, trial, stream, query));
  const cut = lines && (lines.gone > 0 || begin > 0);
  return html`<div class="log">
    <div class="bar small">${["stdout", "stderr"].map((word) => html`<button type="button" aria-pressed=${stream === word} onClick=${() => setStream(word)}>${word}</button>`)}
      <label><input type="checkbox" checked=${follow} onChange=${(event) => setFollow(event.target.checked)} /> follow</label>
      ${!exported && html`<a href=${all} download=${`trial-${trial}-${stream}.txt`}>all of it${size ? ` (${bytes(size)})` : ""}</a>`}</div>
    <${Problem} error=${error} />
    ${cut && html`<p class="quiet">Cut: what came before is not shown${lines.gone ? ` (${several(lines.gone, "line")})` : ""}. ${exported ? "" : html`<a href=${all} download=${`trial-${trial}-${stream}.txt`}>The whole</a> is a file.`}</p>`}
    <pre ref=${frame} tabindex="0" role="log" aria-label=${`${label}: ${stream} of trial ${trial}`}>${lines === null ? (error ? "" : "reading …") : lines.shown.length === 0 ? html`<span class="quiet">nothing was written</span>` : painted(lines.shown, all)}</pre>
  </div>`;
}

function painted(shown, all) {
  let style = "";
  return shown.map((line) => {
    const { pieces, after } = coloured(line.text, style);
    style = after;
    return html`<div class="logline"><bdi>${pieces.length ? pieces.map((piece) => (piece.style ? html`<span class=${piece.style}>${piece.text}</span>` : piece.text)) : " "}</bdi>${line.length > line.text.length && (exported ? html`<span class="cut">… ${count(line.length - line.text.length)} more characters</span>` : html`<a class="cut" href=${all} download>… ${count(line.length - line.text.length)} more characters</a>`)}</div>`;
  });
}
