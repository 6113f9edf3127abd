/** Why nothing, or not more, runs; and who waits for whom. */
import { html, useMemo, useState } from "../page/ui.js";
import { link, trialLink } from "../page/route.js";
import { chain, groups, usual } from "../page/waiting.js";
import { Command, Empty, Foreign, Panel, Problem, State, stateOf, useCalm, useNow } from "../page/widgets.js";
import { count, duration, roughly, several } from "../page/format.js";
import { LimitsButton } from "../page/controls.js";
import { of } from "../page/api.js";
import { COMMANDS } from "../page/commands.js";
import { exported } from "../page/exported.js";
import { usePlot } from "../page/plotted.js";
import { Slots } from "../page/slots.js";

const SHOWN = 24;

export function Waits({ where, live, version, change }) {
  const { table } = live;
  const { head, experiment: summary } = live.standing;
  const { experiment } = where;
  const waiting = head?.waiting ?? [];
  const all = useMemo(() => groups(waiting), [waiting]);
  const whole = head ? head.counts.blocked + head.counts.held : (summary.states.blocked ?? 0) + (summary.states.held ?? 0);
  return html`<main id="main"><div class="bar"><h1>Waits</h1>
      <span class="quiet" role="status">${several(whole, "request")} ${whole === 1 ? "waits" : "wait"}</span>
      ${head && html`<span class="quiet">lookahead ${count(head.lookahead)}</span>`}
      ${change && html`<${LimitsButton} experiment=${experiment} summary=${summary} head=${head} live=${live} />`}</div>
    <${Panel} title="who waits for whom" wide side=${head ? "" : "as the store has it"}>
      ${!head ? html`<${Stored} table=${table} experiment=${experiment} version=${version} />`
        : all.length === 0 ? html`<${Empty}>Nobody waits for anybody.<//>`
        : html`<ul class="waits">${all.slice(0, 200).map((group) => html`<${Group} key=${`${group.mode}${group.parents}${group.place}`} group=${group} waiting=${waiting} table=${table} experiment=${experiment} head=${head} />`)}</ul>`}
      ${whole > waiting.length && head && html`<p class="quiet">The head names ${count(waiting.length)} of ${count(whole)}.</p>`}<//>
    ${!exported && html`<${Slotted} experiment=${experiment} version=${version} />`}
    <div class="grid two">
      <${Panel} title="in the tuner" side=${head ? count(head.counts.open) : ""}>
        ${!head?.open.length ? html`<${Empty}>The tuner works on no request.<//>` : html`<ul class="plain-list">${head.open.slice(0, 50).map((one) => html`<li>request ${one.trial} <span class="quiet">for ${duration(one.for_s)}</span></li>`)}</ul>`}<//>
      <${Panel} title="refused" side="by what">
        ${!Object.keys(head?.refused ?? {}).length ? html`<${Empty}>Nothing was refused.<//>` : html`<ul class="plain-list">${Object.entries(head.refused).map(([who, kinds]) => html`<li><${Foreign} text=${who} />: ${Object.entries(kinds).map(([kind, many]) => html`<${Foreign} text=${kind} /> ${count(many)} `)}</li>`)}</ul>`}<//>
    </div></main>`;
}

/** Seconds between two questions while somebody looks. */
const CALM_S = 15;

/** The last hour: it goes on while nothing changes. */
function Slotted({ experiment, version }) {
  const calm = useCalm(version, CALM_S);
  const turn = Math.floor(useNow(CALM_S) / CALM_S);
  const { data, error, busy } = usePlot(of(experiment, "/plots/slots"), `${calm} ${turn}`);
  return html`<${Panel} title="slots by the second, and what was in the way" wide id="slots" side=${html`<a href=${link(experiment, "plots", { kind: "slots" })}>longer</a>`}>
    <${Problem} error=${error} />
    ${busy && html`<p class="quiet" role="status">Going through the last hour …</p>`}
    ${data && html`<${Slots} data=${data} experiment=${experiment} />
      ${data.notes.map((note) => html`<p class="quiet"><${Foreign} text=${note} most=${400} /></p>`)}
      <p class="as-command"><span class="quiet">the same as</span> <${Command} text=${COMMANDS.plot(experiment, "slots", [])} /></p>`}<//>`;
}

function Group({ group, waiting, table, experiment, head }) {
  const [open, setOpen] = useState(false);
  const parent = group.parents[0];
  const shown = open ? group.waiters : group.waiters.slice(0, SHOWN);
  const way = parent === undefined ? [] : chain(parent, waiting);
  return html`<li class="wait">
    <div class="for">${parent === undefined ? html`<b>a wait of the tuner's own</b> <${Foreign} text=${group.place} most=${200} />`
      : html`${way.map((trial, place) => html`${place ? " ▸ which waits for " : ""}<${Waited} trial=${trial} table=${table} experiment=${experiment} head=${head} />`)}
        ${group.parents.length > 1 && html` <span class="quiet">${group.mode === "any" ? "or" : "and"} ${several(group.parents.length - 1, "other")}: ${group.parents.slice(1, 9).map((one) => html`<a href=${trialLink(experiment, one)}>${one}</a> `)}</span>`}`}</div>
    <div class="by"><b>${count(group.waiters.length)}</b> ${group.waiters.length === 1 ? "waits" : "wait"}, the longest ${duration(group.longest)}: ${shown.map((one) => html`<a href=${trialLink(experiment, one.trial)} title=${`for ${duration(one.for_s)}`}>${one.trial}</a> `)}
      ${group.waiters.length > SHOWN && html`<button type="button" class="plain" onClick=${() => setOpen(!open)}>${open ? "fewer" : `and ${count(group.waiters.length - SHOWN)} more`}</button>`}
      ${group.place && parent !== undefined && html`<span class="quiet"> at <${Foreign} text=${group.place} most=${200} /></span>`}</div></li>`;
}

function Waited({ trial, table, experiment, head }) {
  const row = table.rowOf(trial);
  const runs = head.running.find((one) => one.trial === trial);
  const about = usual(table);
  const state = row < 0 ? "" : stateOf(table.get("state", row), table.get("outcome", row));
  return html`<a href=${trialLink(experiment, trial)}><b>${trial}</b></a> ${runs
    ? html`<span class="quiet">which has run ${duration(runs.for_s)}${about ? ` of about ${roughly(about)}` : ""}${runs.worker ? html` on <a href=${link(experiment, "hosts")}><${Foreign} text=${runs.worker} /></a>` : ""}</span>`
    : state && html`<${State} word=${state} />`}`;
}

/** Without a head: requests by the parents that the store names. */
function Stored({ table, experiment, version }) {
  const found = useMemo(() => {
    const by = new Map();
    for (let row = 0; row < table.count; row += 1) {
      if (!["blocked", "held"].includes(table.get("state", row))) continue;
      const parent = table.get("parent", row);
      by.has(parent) ? by.get(parent).push(row) : by.set(parent, [row]);
    }
    return [...by].sort((a, b) => b[1].length - a[1].length);
  }, [table, version]);
  if (!found.length) return html`<${Empty}>No head answers, and the store has nobody who waits.<//>`;
  return html`<ul class="waits">${found.slice(0, 200).map(([parent, rows]) => html`<li class="wait"><div class="for">${parent === null ? "for something that the head knew" : html`<a href=${trialLink(experiment, parent)}><b>${parent}</b></a>`}</div><div class="by">${count(rows.length)} waited: ${rows.slice(0, SHOWN).map((row) => html`<a href=${trialLink(experiment, table.number("trial", row))}>${table.number("trial", row)}</a> `)}</div></li>`)}</ul>`;
}
