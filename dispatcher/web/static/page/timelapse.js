/** The search as it was: a slider over its time, on pages that draw what happened. */
import { html, useEffect, useMemo, useRef, useState } from "./ui.js";
import { get, of } from "./api.js";
import { COMMANDS } from "./commands.js";
import { choose } from "./navigation.js";
import { History, summaryAt, tableAt } from "./past.js";
import { Command, Foreign, Problem } from "./widgets.js";
import { count, duration, moment } from "./format.js";

const PAGES = new Set(["overview", "lineage", "trials"]);

/** Steps of the slider, seconds that all of it takes to play, and pictures of a second. */
const STEPS = 1000;
const PLAYS_S = 30;
const FRAMES_S = 8;

const readAt = (text) => (/^\d{1,11}(\.\d{1,3})?$/.test(text ?? "") ? Number(text) : null);
const rounded = (at) => Math.round(at * 1000) / 1000;

/** What pages are shown of an experiment, as it is or as it was, and the bar that chooses. */
export function useTimeLapse(where, live) {
  const asked = PAGES.has(where.page) ? readAt(where.query.at) : null;
  const [moving, setMoving] = useState(null); // while it plays or is dragged: not in the address
  const [state, setState] = useState({});
  const on = asked !== null;
  useEffect(() => {
    if (!on || state.history) return;
    get(of(where.experiment, "/history")).then((told) => setState({ history: new History(told) }), (error) => setState({ error }));
  }, [on]);
  useEffect(() => {
    if (on) return;
    setMoving(null);
    setState({}); // read anew the next time
  }, [on]);
  const { history } = state;
  const at = on ? moving ?? asked : null;
  const version = live?.table?.version;
  const table = useMemo(() => (at !== null && history && live?.table ? tableAt(live.table, history, at) : null), [at, history, live?.table, version]);
  const shown = useMemo(() => (table ? { ...then(live, table) } : live), [table, live, live?.standing, version]);
  const bar = PAGES.has(where.page) && html`<${Bar} at=${at} on=${on} state=${state} live=${live} table=${table} move=${setMoving} />`;
  return { live: shown, bar };
}

function then(live, table) {
  const experiment = summaryAt(live.standing.experiment, table);
  return { experiment: live.experiment, table, standing: { ...live.standing, experiment, head: null }, line: live.line,
    heardAt: live.heardAt, changedTrials: new Set(), refresh: () => live.refresh() };
}

function Bar({ at, on, state, live, table, move }) {
  const [playing, setPlaying] = useState(false);
  const low = live.table.once("began", () => first(live.table));
  const high = Math.max(low + 1, state.history?.until ?? 0, last(live.table));
  const settle = (time) => {
    move(null);
    choose({ at: time === null ? null : rounded(Math.min(high, Math.max(low, time))) });
  };
  const open = () => settle(high);
  const step = (high - low) / 50;
  const timer = useRef(0);
  const stop = () => {
    clearInterval(timer.current); // at once: no picture may come behind the last
    setPlaying(false);
    settle(at);
  };
  const tools = useRef({});
  tools.current = { at, on, open, settle, step, play: () => (playing ? stop() : setPlaying(true)), close: () => settle(null) };
  useEffect(() => keys(tools), []);
  useEffect(() => {
    if (!playing || at === null) return undefined;
    let now = at >= high ? low : at;
    timer.current = setInterval(() => {
      now = Math.min(high, now + (high - low) / (PLAYS_S * FRAMES_S));
      if (now < high) move(now);
      else {
        clearInterval(timer.current);
        setPlaying(false);
        settle(high);
      }
    }, 1000 / FRAMES_S);
    return () => clearInterval(timer.current);
  }, [playing]);
  useEffect(() => {
    if (!on) setPlaying(false);
  }, [on]);
  if (!on) return html`<div class="lapse"><button type="button" class="small" onClick=${open} title="b">◷ look back</button></div>`;
  const states = table ? table.tally("state") : new Map();
  return html`<section class="lapse open" aria-label="the search as it was">
    <button type="button" onClick=${() => (playing ? stop() : setPlaying(true))} aria-pressed=${playing} disabled=${!table} title="p">${playing ? "❚❚ stop" : "▶ play"}</button>
    <input type="range" aria-label="time of the search" min="0" max=${STEPS} step="1" value=${Math.round(((at - low) / (high - low)) * STEPS)} aria-valuetext=${moment(at)}
      onInput=${(event) => move(low + (Number(event.target.value) / STEPS) * (high - low))} onChange=${(event) => settle(low + (Number(event.target.value) / STEPS) * (high - low))} />
    <span class="at"><b>${moment(at)}</b> <span class="quiet">${duration(at - low)} after the first request</span></span>
    ${table && html`<span class="counts" data-lapse>${["open", "queued", "running", "ended"].map((word, place) => html`${place ? " · " : ""}<b>${count(states.get(word) ?? 0)}</b> ${WORDS[word]}`)}</span>`}
    <button type="button" onClick=${() => settle(null)}>back to now</button>
    <${Command} text=${COMMANDS.at(live.standing.experiment.id, rounded(at))} />
    <${Problem} error=${state.error} />
    ${state.history?.notes.map((one) => html`<p class="quiet"><${Foreign} text=${one} most=${400} /></p>`)}</section>`;
}

const WORDS = { open: "in the tuner", queued: "wait", running: "run", ended: "over" };

function first(table) {
  let low = Infinity;
  for (let row = 0; row < table.count; row += 1) low = Math.min(low, table.number("created", row) || Infinity);
  return Number.isFinite(low) ? low : Date.now() / 1000 - 1;
}

function last(table) {
  let high = 0;
  for (let row = 0; row < table.count; row += 1) {
    for (const name of ["created", "started", "ended"]) high = Math.max(high, table.number(name, row) || 0);
  }
  return high;
}

/** `b` looks back or returns, `,` and `.` step, `p` plays. */
function keys(tools) {
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.closest("input:not([type=range]), textarea, select, dialog")) return;
    const { at, on, open, close, settle, step, play } = tools.current;
    if (event.key === "b") on ? close() : open();
    else if (!on) return;
    else if (event.key === ",") settle(at - step);
    else if (event.key === ".") settle(at + step);
    else if (event.key === "p") play();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
