/** Two to eight trials side by side: only what differs, one picture of curves, logs. */
import { html, useEffect, useMemo, useState } from "../page/ui.js";
import { get, of } from "../page/api.js";
import { readTrials, trialLink } from "../page/route.js";
import { choose } from "../page/navigation.js";
import { Chart } from "../page/chart.js";
import { Log } from "../page/log.js";
import { flatten, same } from "../page/words.js";
import { Empty, Foreign, Panel, Problem, State, stateOf } from "../page/widgets.js";
import { joined } from "../page/curves.js";
import { count, duration, number, value as shownValue, whole } from "../page/format.js";

/** Names of parameters in which trials differ, or all. Pure. */
export function rowsOf(trials, everything) {
  const flat = trials.map((one) => flatten(one.parameters ?? {}));
  const names = [...new Set(flat.flatMap((one) => Object.keys(one)))];
  return names.map((name) => ({ name, values: flat.map((one) => one[name]), differs: flat.some((one) => !same(one[name] ?? null, flat[0][name] ?? null) || (name in one) !== (name in flat[0])) }))
    .filter((one) => everything || (one.differs && !/^(save|restore)_path$/.test(one.name)));
}

/** The nearest common ancestor of rows, or -1. Pure. */
export function ancestor(table, rows) {
  const lines = rows.map((row) => table.line(row));
  let found = -1;
  for (let at = 0; lines.length && at < lines[0].length; at += 1) {
    if (!lines.every((line) => line[at] === lines[0][at])) break;
    found = lines[0][at];
  }
  return found;
}

export function Compare({ where, live, version }) {
  const { table } = live;
  const { experiment, query } = where;
  const wanted = readTrials(query.trials, 8);
  const key = wanted.join(",");
  const [state, setState] = useState({});
  const stamp = wanted.map((trial) => (table.rowOf(trial) < 0 ? "" : table.get("state", table.rowOf(trial)))).join();
  useEffect(() => {
    let ended = false;
    Promise.allSettled(wanted.map((trial) => get(of(experiment, `/trials/${trial}`)))).then((answers) => {
      if (ended) return;
      const failed = answers.find((one) => one.status === "rejected");
      setState({ key, told: answers.filter((one) => one.status === "fulfilled").map((one) => one.value), error: failed?.reason });
    });
    return () => {
      ended = true;
    };
  }, [key, stamp]);
  const told = state.key === key ? state.told : [];
  const everything = query.all === "1";
  return html`<main id="main"><div class="bar"><h1>Compare</h1>
      <${Chooser} wanted=${wanted} table=${table} />
      <label><input type="checkbox" checked=${everything} onChange=${(event) => choose({ all: event.target.checked ? "1" : null })} /> all parameters</label></div>
    <${Problem} error=${state.error} />
    ${wanted.length < 2 ? html`<${Empty}>Name two to eight trials above, or mark them in the table of trials (<kbd>x</kbd>, then <kbd>c</kbd>).<//>` : told.length > 0 && html`
      <${Differences} told=${told} table=${table} experiment=${experiment} everything=${everything} mode=${live.standing.experiment.mode} />
      <${Curves} trials=${key} experiment=${experiment} stamp=${stamp} />
      <section class="panel wide" aria-label="logs side by side"><header><h2>logs</h2></header><div class="side-by-side">${told.slice(0, 4).map((one) => html`<div key=${one.trial.id}><h3>Trial ${one.trial.id}</h3><${Log} experiment=${experiment} trial=${one.trial.id} attempt=${one.trial.attempt || undefined} running=${false} /></div>`)}</div>
        ${told.length > 4 && html`<p class="quiet">Logs of the first four.</p>`}</section>`}
  </main>`;
}

function Chooser({ wanted, table }) {
  const [text, setText] = useState(wanted.join(", "));
  useEffect(() => setText(wanted.join(", ")), [wanted.join()]);
  const submit = (event) => {
    event.preventDefault();
    choose({ trials: readTrials(text.replace(/[\s,;]+/g, ","), 8).filter((one) => table.rowOf(one) >= 0).join(",") });
  };
  return html`<form onSubmit=${submit} class="inline"><label>trials <input type="text" data-filter inputmode="numeric" value=${text} placeholder="5820, 6102" onInput=${(event) => setText(event.target.value)} /></label> <button>compare</button></form>`;
}

function Differences({ told, table, experiment, everything, mode }) {
  const trials = told.map((one) => one.trial);
  const rows = useMemo(() => rowsOf(trials, everything), [told, everything]);
  const common = ancestor(table, trials.map((one) => table.rowOf(one.id)).filter((row) => row >= 0));
  const facts = [
    ["state", (one) => html`<${State} word=${stateOf(one.state, one.outcome)} />`], ["value", (one) => number(one.value, 6)],
    ["parent", (one) => (one.parent === null ? "–" : html`<a href=${trialLink(experiment, one.parent)}>${one.parent}</a>`)],
    ["generation", (one) => (table.rowOf(one.id) < 0 ? "–" : count(table.get("generation", table.rowOf(one.id))))],
    ["took", (one) => duration(one.ended_at && one.started_at ? one.ended_at - one.started_at : NaN)], ["CPU", (one) => duration(one.cpu_s)],
  ];
  const best = trials.reduce((found, one) => (one.value !== null && (found === null || (mode === "minimize" ? one.value < found : one.value > found)) ? one.value : found), null);
  return html`<section class="panel wide" aria-label="differences"><header><h2>${everything ? "all parameters" : "what differs"}</h2><div class="side">${common >= 0 ? html`common ancestor: <a href=${trialLink(experiment, table.number("trial", common))}>${table.number("trial", common)}</a>` : "no common ancestor"}</div></header>
    <div class="scroll" tabindex="0" role="region" aria-label="table of differences"><table class="list compare"><thead><tr><td></td>${trials.map((one) => html`<th scope="col"><a href=${trialLink(experiment, one.id)}>${one.id}</a></th>`)}</tr></thead>
      <tbody>${facts.map(([name, make]) => html`<tr key=${name}><th scope="row" class="quiet">${name}</th>${trials.map((one) => html`<td class=${name === "value" && one.value !== null && one.value === best ? "best" : ""}>${make(one)}</td>`)}</tr>`)}
        ${rows.slice(0, 500).map((one) => html`<tr key=${`p ${one.name}`} class=${one.differs && everything ? "differs" : ""}><th scope="row"><${Foreign} text=${one.name} most=${120} /></th>${one.values.map((each) => html`<td><bdi title=${whole(each ?? null)}>${each === undefined ? html`<span class="quiet">not there</span>` : shownValue(each, 80)}</bdi></td>`)}</tr>`)}</tbody></table></div>
    ${rows.length === 0 && html`<${Empty}>Their parameters do not differ.<//>`}</section>`;
}

function Curves({ trials, experiment, stamp }) {
  const [told, setTold] = useState(null);
  useEffect(() => {
    let ended = false;
    get(of(experiment, `/curves?trials=${trials}&points=400`)).then((answer) => ended || setTold(answer), () => ended || setTold({ curves: [] }));
    return () => {
      ended = true;
    };
  }, [trials, stamp]);
  const drawn = useMemo(() => told && joined(told.curves.filter((one) => one.steps.length)), [told]);
  return html`<${Panel} title="curves" wide>${drawn && (drawn.series.length === 0 ? html`<${Empty}>None of them has reported intermediate metrics.<//>` : html`<${Chart} data=${drawn.data} series=${drawn.series} x="report" whole height=${260} label=${`curves of trials ${trials}`} />`)}<//>`;
}
