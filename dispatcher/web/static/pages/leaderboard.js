/** Boards of experiments that can be compared, the best first; seeds of one name beside each other. */
import { html, useEffect, useState } from "../page/ui.js";
import { link, trialLink, writeQuery } from "../page/route.js";
import { choose } from "../page/navigation.js";
import { COMMANDS } from "../page/commands.js";
import { Annotate, Marks, Star } from "../page/annotations.js";
import { Choose, Command, Empty, Foreign, Problem, State } from "../page/widgets.js";
import { ago, count, duration, number } from "../page/format.js";
import { useAsked } from "./experiments.js";

const GROUPS = [["dataset", "data set"], ["tuner", "tuner"], ["tag", "tag"], ["name", "name"], ["none", "nothing"]];
const FILTERS = [["dataset", "data set"], ["tuner", "tuner"], ["tag", "tag"], ["name", "name"]];
const MOST = 200;

/** What the address asks for; what is usual stays out of it. Pure. */
export function asked(query) {
  const known = new Set(GROUPS.map(([word]) => word));
  const wanted = { group: known.has(query.group) ? query.group : "dataset" };
  for (const [name] of FILTERS) if (query[name]) wanted[name] = query[name].slice(0, name === "tag" ? 64 : 200);
  if (query.starred) wanted.starred = "true";
  return wanted;
}

export function Leaderboard({ where, change }) {
  const wanted = asked(where.query);
  const { told, error, again } = useAsked(`/leaderboard${writeQuery(wanted)}`);
  useEffect(() => {
    document.title = "leaderboard · bequeath";
  }, []);
  const boards = told?.boards;
  return html`<main id="main">
    <div class="bar"><h1>Leaderboard</h1>
      <${Choose} label="group by" value=${wanted.group} options=${GROUPS} onChange=${(value) => choose({ group: value === "dataset" ? null : value })} />
      ${FILTERS.map(([name, title]) => html`<${Field} key=${name} title=${title} given=${wanted[name] ?? ""} onChange=${(value) => choose({ [name]: value || null })} />`)}
      <label><input type="checkbox" checked=${Boolean(wanted.starred)} onChange=${(event) => choose({ starred: event.target.checked ? "true" : null })} /> starred</label></div>
    <${Problem} error=${error} />
    ${boards?.length === 0 && html`<${Empty}>No experiment that is meant has a result yet.<//>`}
    ${(boards ?? []).map((board) => html`<${Board} key=${`${board.mode} ${board.group}`} board=${board} group=${wanted.group} change=${change} onDone=${again} />`)}
    <p class="as-command"><span class="quiet">the same as</span> <${Command} text=${COMMANDS.leaderboard(wanted)} /></p>
  </main>`;
}

/** A filter that waits until one has typed. */
function Field({ title, given, onChange }) {
  const [text, setText] = useState(given);
  useEffect(() => setText(given), [given]);
  return html`<label class="choose">${title} <input type="search" size="10" value=${text} onInput=${(event) => setText(event.target.value)} onChange=${(event) => onChange(event.target.value.trim())} /></label>`;
}

const titleOf = (board, group) => {
  const named = GROUPS.find(([word]) => word === group)[1];
  return group === "none" ? "all experiments" : board.group ? `${named} ${board.group}` : `without a ${named}`;
};

function Board({ board, group, change, onDone }) {
  const title = titleOf(board, group);
  const head = ["#", "value", "trial", "experiment", "data set", "tuner", "seed", "trials", "CPU", "status", "begun", "tags"];
  const right = new Set(["#", "value", "seed", "trials", "CPU"]);
  const seeds = board.names.filter((one) => one.runs > 1);
  return html`<section class="panel board" aria-label=${title}><header><h2><${Foreign} text=${title} most=${120} /></h2><div class="side">${board.mode === "minimize" ? "↓ less is better" : "↑ more is better"}</div></header>
    <div class="scroll" tabindex="0" role="region" aria-label=${`board of ${title}, ${board.mode}`}><table class="list"><thead><tr>${head.map((word) => html`<th scope="col" class=${right.has(word) ? "right" : ""}>${word}</th>`)}${change && html`<th scope="col"><span class="hidden">change</span></th>`}</tr></thead>
    <tbody>${board.experiments.slice(0, MOST).map(({ place, experiment: one }) => html`<tr key=${one.id}>
      <td class="right">${place}</td><td class="right"><b>${number(one.best_value, 6)}</b></td><td><a href=${trialLink(one.id, one.best_trial)}>${one.best_trial}</a></td>
      <th scope="row">${change && html`<${Star} experiment=${one.id} starred=${one.starred} onDone=${onDone} />`}<a href=${link(one.id)}><${Foreign} text=${one.name} most=${60} /></a> <span class="quiet"><${Foreign} text=${one.id} most=${80} /></span></th>
      <td><${Foreign} text=${one.dataset} most=${60} /></td><td><${Foreign} text=${one.tuner} most=${60} /></td><td class="right">${one.seed ?? ""}</td><td class="right">${count(one.trials)}</td><td class="right">${duration(one.cpu_s)}</td>
      <td><${State} word=${one.status} /></td><td>${ago(one.created_at)}</td><td><${Marks} tags=${one.tags} starred=${!change && one.starred} to=${(tag) => `leaderboard${writeQuery({ group: "tag", tag })}`} /></td>
      ${change && html`<td><${Annotate} experiment=${one.id} trials=${[null]} star=${false} onDone=${onDone} /></td>`}</tr>`)}</tbody></table></div>
    ${board.experiments.length > MOST && html`<p class="quiet">The first ${MOST} of ${count(board.experiments.length)}: filter for others.</p>`}
    ${seeds.length > 0 && html`<h3>runs of one name</h3><div class="scroll" tabindex="0" role="region" aria-label=${`runs of one name in ${title}`}><table class="list small"><thead><tr><th scope="col">name</th><th scope="col">tuner</th><th scope="col" class="right">runs</th><th scope="col" class="right">median</th><th scope="col" class="right">best</th><th scope="col" class="right">worst</th><th scope="col" class="right">CPU</th></tr></thead>
      <tbody>${seeds.slice(0, MOST).map((one) => html`<tr><th scope="row"><a href=${`leaderboard${writeQuery({ group: "name", name: one.name })}`}><${Foreign} text=${one.name} most=${60} /></a></th><td><${Foreign} text=${one.tuner} most=${60} /></td>
        <td class="right">${count(one.runs)}</td><td class="right"><b>${number(one.median, 6)}</b></td><td class="right">${number(one.best, 6)}</td><td class="right">${number(one.worst, 6)}</td><td class="right">${duration(one.cpu_s)}</td></tr>`)}</tbody></table></div>`}</section>`;
}
