/** Small parts that all pages are made of. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { exported } from "./exported.js";
import { visible } from "./safe.js";

/** A text of a trial: isolated from its surroundings, with hidden marks shown. */
export const Foreign = ({ text, most = 4000, title }) => {
  const all = visible(String(text ?? ""));
  return html`<bdi class="foreign" title=${title}>${all.length > most ? `${all.slice(0, most)}…` : all}</bdi>`;
};

const SIGNS = {
  succeeded: "✓", failed: "✗", "timed out": "◔", lost: "?", killed: "■", "stopped early": "◖",
  "no trial": "·", running: "▶", queued: "…", blocked: "⏸", held: "⏸", parked: "·", open: "○",
  backoff: "↻", delivering: "→", completed: "✓", stopped: "■", draining: "◖", stopping: "◖",
};

/** A state: a sign and a word, so that no colour is needed to tell it. */
export const State = ({ word }) =>
  html`<span class=${`state state-${String(word).replace(/\W+/g, "-")}`}><span aria-hidden="true">${SIGNS[word] ?? "•"}</span> ${word}</span>`;

/** The state of a trial in one word: its outcome, once it has one. */
export const stateOf = (state, outcome) => (state === "ended" && outcome ? outcome : state);

export const Panel = ({ title, side, children, wide, id }) => html`
  <section class=${`panel${wide ? " wide" : ""}`} id=${id} aria-label=${title}>
    ${title && html`<header><h2>${title}</h2>${side && html`<div class="side">${side}</div>`}</header>`}
    ${children}
  </section>`;

/** An error with the server's words: what is wrong, where, and what to do. */
export const Problem = ({ error, children }) => error && html`
  <div class="problem" role="alert">
    <strong><${Foreign} text=${error.message} /></strong>
    ${error.where && html` <span class="quiet"><${Foreign} text=${error.where} /></span>`}
    ${error.hint && html`<div><${Foreign} text=${error.hint} /></div>`}
    ${children}
  </div>`;

/** A command, to be copied. */
export function Command({ text }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch { /* no clipboard without a secure address: the text can be selected */ }
  };
  const all = visible(text);
  return html`<span class="command"><code title=${all.length > 300 ? all.slice(0, 2000) : undefined}>${all.length > 300 ? `${all.slice(0, 300)}…` : all}</code>
    <button type="button" class="small" onClick=${copy} aria-label=${copied ? "copied" : "copy this command"}>${copied ? "copied" : "copy"}</button></span>`;
}

/**
 * A dialog of the browser's own: it keeps the focus, and Escape closes it.
 * `act` changes something; its answer is shown until the dialog is closed.
 */
export function Ask({ title, children, command, word, danger, act, onClose, disabled }) {
  const dialog = useRef(null);
  const [state, setState] = useState({});
  useLayoutEffect(() => {
    dialog.current.showModal();
    return () => dialog.current?.close();
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      setState({ done: (await act()) ?? "done" });
    } catch (error) {
      setState({ error });
    }
  };
  return html`
    <dialog ref=${dialog} onClose=${onClose} onCancel=${onClose} aria-labelledby="ask-title">
      <form onSubmit=${submit}>
        <h2 id="ask-title">${title}</h2>
        ${children}
        ${command && html`<p class="as-command"><span class="quiet">the same as</span> <${Command} text=${command} /></p>`}
        <${Problem} error=${state.error} />
        ${state.done && html`<p role="status" class="done">✓ ${state.done}</p>`}
        <div class="buttons">
          <button type="button" onClick=${() => dialog.current.close()}>${state.done ? "close" : "cancel"}</button>
          ${!state.done && html`<button type="submit" class=${danger ? "danger" : "main"} disabled=${state.busy || disabled}>${state.busy ? "…" : word}</button>`}
        </div>
      </form>
    </dialog>`;
}

/** A choice of a few words. */
export const Choose = ({ label, value, options, onChange }) => html`
  <label class="choose">${label} <select value=${value} onChange=${(event) => onChange(event.target.value)}>
    ${options.map((one) => (Array.isArray(one) ? one : [one, one])).map(([word, text]) => html`<option value=${word} selected=${word === value}>${text}</option>`)}
  </select></label>`;

/** Words in place of what is not there yet. */
export const Empty = ({ children }) => html`<p class="quiet empty">${children}</p>`;

const EXPORTED_AT = Number(globalThis.document?.documentElement.dataset.savedAt);

/** The time now, renewed each `seconds`, for "3 s ago". */
export function useNow(seconds = 1) {
  const [now, setNow] = useState(exported ? EXPORTED_AT : Date.now() / 1000);
  useEffect(() => {
    if (exported) return undefined; // nothing goes on in a file
    const timer = setInterval(() => document.hidden || setNow(Date.now() / 1000), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return now;
}

/** A value that follows another one at most each so many seconds: for pictures that take long to make. */
export function useCalm(value, seconds) {
  const [shown, setShown] = useState(value);
  const due = useRef(0);
  useEffect(() => {
    if (value === shown) return undefined;
    const timer = setTimeout(() => {
      due.current = Date.now() + seconds * 1000;
      setShown(value);
    }, Math.max(0, due.current - Date.now()));
    return () => clearTimeout(timer);
  }, [value, shown, seconds]);
  return shown;
}

/** The width of an element as it is. */
export function useWidth(otherwise = 600) {
  const place = useRef(null);
  const [width, setWidth] = useState(otherwise);
  useEffect(() => {
    // In the next frame: what is drawn here may change the width once more.
    const watch = new ResizeObserver(([entry]) => requestAnimationFrame(() => setWidth(Math.floor(entry.contentRect.width))));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  return [place, width];
}
