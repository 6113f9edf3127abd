/** The best trial of each experiment, the best first: by name, so that seeds stand beside each other. */
import { html, useEffect, useMemo } from "../page/ui.js";
import { link, trialLink } from "../page/route.js";
import { choose } from "../page/navigation.js";
import { Choose, Empty, Foreign, Problem, State } from "../page/widgets.js";
import { ago, count, number } from "../page/format.js";
import { useExperiments } from "./experiments.js";

/** Groups of experiments with a best value, each the best first. Pure. */
export function boards(list, by) {
  const groups = new Map();
  for (const one of list) {
    if (one.best_value === null || one.problem) continue;
    const name = by === "name" ? `${one.name} · ${one.mode}` : one.mode;
    groups.has(name) ? groups.get(name).push(one) : groups.set(name, [one]);
  }
  for (const rows of groups.values()) {
    rows.sort((a, b) => (a.mode === "minimize" ? a.best_value - b.best_value : b.best_value - a.best_value));
  }
  return [...groups].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
}

export function Leaderboard({ where }) {
  const { list, error } = useExperiments();
  const by = where.query.by ?? "name";
  const groups = useMemo(() => boards(list ?? [], by), [list, by]);
  useEffect(() => {
    document.title = "leaderboard · bequeath";
  }, []);
  return html`<main id="main">
    <div class="bar"><h1>Leaderboard</h1>
      <${Choose} label="group by" value=${by} options=${[["name", "name"], ["mode", "direction"]]} onChange=${(value) => choose({ by: value })} /></div>
    <${Problem} error=${error} />
    ${list && groups.length === 0 && html`<${Empty}>No experiment has a result yet.<//>`}
    ${groups.map(([name, rows]) => html`<section class="panel" aria-label=${name}><header><h2><${Foreign} text=${name} /></h2></header>
      <div class="scroll" tabindex="0" role="region" aria-label=${`board of ${name}`}><table class="list"><thead><tr><th scope="col" class="right">#</th><th scope="col" class="right">value</th><th scope="col">trial</th><th scope="col">experiment</th><th scope="col">status</th><th scope="col" class="right">trials</th><th scope="col">begun</th></tr></thead>
      <tbody>${rows.slice(0, 200).map((one, place) => html`<tr key=${one.id}><td class="right">${place + 1}</td><td class="right">${number(one.best_value, 6)}</td>
        <td><a href=${trialLink(one.id, one.best_trial)}>${one.best_trial}</a></td><td><a href=${link(one.id)}><${Foreign} text=${one.id} /></a></td>
        <td><${State} word=${one.status} /></td><td class="right">${count(one.trials)}</td><td>${ago(one.created_at)}</td></tr>`)}</tbody></table></div></section>`)}
  </main>`;
}
