/** All experiments. */
import { html, useEffect, useMemo, useState } from "../page/ui.js";
import { get } from "../page/api.js";
import { link, trialLink } from "../page/route.js";
import { choose } from "../page/navigation.js";
import { Marks, Star } from "../page/annotations.js";
import { Empty, Foreign, Problem, State, useNow } from "../page/widgets.js";
import { ago, count, number, several } from "../page/format.js";

const AGAIN_MS = 5000;

/** An answer, asked for again some time after the last one came; never twice at once. */
export function useAsked(path) {
  const [state, setState] = useState({ told: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let timer = 0;
    let ended = false;
    const ask = async () => {
      if (!document.hidden) {
        try {
          const told = await get(path);
          if (!ended) setState({ told, error: null });
        } catch (error) {
          if (!ended) setState((before) => ({ ...before, error }));
        }
      }
      if (!ended) timer = setTimeout(ask, AGAIN_MS);
    };
    ask();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [path, turn]);
  return { ...state, again: () => setTurn((now) => now + 1) };
}

export function Experiments({ where, change }) {
  const { told, error, again } = useAsked("/experiments");
  const list = told?.experiments ?? null;
  const others = told?.others ?? 0;
  const now = useNow(10);
  const asked = where.query.q ?? "";
  const shown = useMemo(() => {
    const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
    return (list ?? []).filter((one) => words.every((word) => `${one.id} ${one.name} ${one.status} ${one.dataset} ${one.tuner} ${(one.tags ?? []).join(" ")}`.toLowerCase().includes(word)));
  }, [list, asked]);
  useEffect(() => {
    document.title = "experiments · bequeath";
  }, []);
  return html`<main id="main" class="experiments">
    <div class="bar"><h1>Experiments</h1>
      <input type="search" data-filter aria-label="search by id, name, status, data set, tuner or tag" placeholder="id, name, status, tag" value=${asked} onInput=${(event) => choose({ q: event.target.value })} />
      ${list && html`<span class="quiet" role="status">${shown.length === list.length ? several(list.length, "experiment") : `${count(shown.length)} of ${several(list.length, "experiment")}`}</span>`}</div>
    <${Problem} error=${error} />
    ${list === null && !error && html`<p class="quiet">Looking for experiments …</p>`}
    ${list?.length === 0 && html`<${Empty}>There are no experiments yet. <code>bequeath run FILE</code> starts one.<//>`}
    ${list?.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="experiments"><table class="list">
      <thead><tr><th scope="col">experiment</th><th scope="col">status</th><th scope="col" class="right">trials</th><th scope="col" class="right">best</th><th scope="col">of trial</th><th scope="col">last event</th><th scope="col">created</th></tr></thead>
      <tbody>${shown.slice(0, 1000).map((one) => html`<tr key=${one.id}>
        <th scope="row">${change && html`<${Star} experiment=${one.id} starred=${one.starred} onDone=${again} />`}<a href=${link(one.id)}><${Foreign} text=${one.name} most=${80} /></a> <span class="quiet"><${Foreign} text=${one.id} most=${80} /></span> <${Marks} tags=${one.tags} starred=${!change && one.starred} />
          ${one.problem && html`<div class="warn">⚠ <${Foreign} text=${one.problem} most=${300} /></div>`}</th>
        <td><${State} word=${one.status} /></td>
        <td class="right">${count(one.trials)}</td>
        <td class="right">${number(one.best_value)} <span class="quiet" title=${one.mode}>${one.best_value === null ? "" : one.mode === "minimize" ? "↓" : "↑"}</span></td>
        <td>${one.best_trial === null ? "–" : html`<a href=${trialLink(one.id, one.best_trial)}>${one.best_trial}</a>`}</td>
        <td>${ago(one.last_event_at, now)}</td><td>${ago(one.created_at, now)}</td></tr>`)}</tbody></table></div>`}
    ${shown.length > 1000 && html`<p class="quiet">The first 1,000 are shown: search for the others.</p>`}
    ${others > 0 && html`<p class="quiet">${several(others, "experiment")} beside them ${others === 1 ? "belongs" : "belong"} to somebody else.</p>`}
  </main>`;
}
