/** What was promised, checked over this run: a receipt. */
import { html, useMemo, useState } from "../page/ui.js";
import { change as changeIt, of } from "../page/api.js";
import { trialLink } from "../page/route.js";
import { COMMANDS } from "../page/commands.js";
import { write } from "../page/json.js";
import { endings, inheritance, rings } from "../page/receipt.js";
import { Command, Foreign, Panel, Problem, useCalm } from "../page/widgets.js";
import { count, duration, several } from "../page/format.js";

export function Checks({ where, live, version: newest, change }) {
  const version = useCalm(newest, 1);
  const { table } = live;
  const { experiment } = where;
  const [state, setState] = useState({});
  const inherited = useMemo(() => inheritance(table), [table, version]);
  const ringed = useMemo(() => rings(table), [table, version]);
  const ended = useMemo(() => endings(table), [table, version]);
  const verify = async () => {
    setState({ busy: true });
    try {
      setState({ told: await changeIt("POST", of(experiment, "/verify"), {}), at: new Date().toISOString() });
    } catch (error) {
      setState({ error });
    }
  };
  const { told } = state;
  const rows = [
    { ok: inherited.early.length === 0 ? true : null, what: "Each child began after its parent had ended.", but: "Sooner, which only versions of shared stores allow:", figure: `${several(inherited.pairs, "pair")}${inherited.shortest === null ? "" : `, the shortest margin ${duration(inherited.shortest)}`}`, trials: inherited.early },
    { ok: ringed.length === 0, what: "No trial descends from itself.", figure: several(table.count, "trial"), trials: ringed },
    { ok: ended.without.length === 0, what: "Each trial that is over has an outcome.", figure: `${count(ended.over)} over`, trials: ended.without },
    { ok: told ? told.ok : null, what: "The store is what its journal says: replayed, each table is the same.", figure: told ? `${several(told.events, "event")}, ${several(told.trials, "trial")}` : "not run yet", trials: [] },
    { ok: told ? told.damage.length === 0 && !told.broken_at : null, what: "No part of the store is damaged.", figure: told ? (told.broken_at ? `broken at ${told.broken_at}` : several(told.damage.length, "fault")) : "not run yet", trials: [] },
  ];
  const receipt = () => ({ experiment: live.standing.experiment.id, at: state.at ?? new Date().toISOString(), trials: table.count, cursor: table.cursor,
    checks: rows.map(({ ok, what, figure, trials }) => ({ ok, what, figure, trials: trials.slice(0, 1000) })), verify: told ?? null });
  const save = () => {
    const anchor = document.createElement("a");
    anchor.href = URL.createObjectURL(new Blob([write(receipt(), 2)], { type: "application/json" }));
    anchor.download = `${live.standing.experiment.id}-checks.json`;
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
  };
  return html`<main id="main"><div class="bar"><h1>Checks</h1>
      ${change ? html`<button type="button" class="main" onClick=${verify} disabled=${state.busy}>${state.busy ? "verifying …" : "verify"}</button>` : html`<span class="quiet">Verifying needs a link that may change things.</span>`}
      <button type="button" onClick=${save}>receipt as JSON</button> <${Command} text=${COMMANDS.verify(experiment)} /></div>
    <${Problem} error=${state.error} />
    <${Panel} title="over this run" wide><ul class="checks" aria-live="polite">${rows.map((one) => html`<li class=${one.ok === null ? "open" : one.ok ? "ok" : "broken"}>
      <span class="sign" aria-hidden="true">${one.ok === null ? "·" : one.ok ? "✓" : "✗"}</span><span><span class="hidden">${one.ok === null ? "not checked: " : one.ok ? "holds: " : "broken: "}</span>${one.what}
        ${one.trials.length > 0 && html`<span class="warn"> ${one.but ?? "Not so:"} ${one.trials.slice(0, 20).map((trial) => html`<a href=${trialLink(experiment, trial)}>${trial}</a> `)}${one.trials.length > 20 ? `and ${count(one.trials.length - 20)} more` : ""}</span>`}</span>
      <span class="figure">${one.figure}</span></li>`)}</ul>
      ${ended.silent.length > 0 && html`<p class="quiet">${several(ended.silent.length, "trial")} succeeded without a number as the result.</p>`}<//>
    ${told && (told.damage.length > 0 || told.differences.length > 0 || told.mended) && html`<${Panel} title="what verify found" wide>
      ${told.mended && html`<p><${Foreign} text=${told.mended} /></p>`}
      <ul class="plain-list">${[...told.damage, ...told.differences].slice(0, 200).map((one) => html`<li class="warn"><${Foreign} text=${one} most=${1000} /></li>`)}</ul><//>`}
  </main>`;
}
