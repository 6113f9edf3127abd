/** What was promised, checked over this run: a receipt. */
import { html, useEffect, useMemo, useState } from "../page/ui.js";
import { change as changeIt, get, of } from "../page/api.js";
import { trialLink } from "../page/route.js";
import { COMMANDS } from "../page/commands.js";
import { write } from "../page/json.js";
import { endings } from "../page/receipt.js";
import { promises, receipt, receiptText } from "../page/promises.js";
import { Command, Foreign, Panel, Problem, useCalm } from "../page/widgets.js";
import { count, several } from "../page/format.js";

export function Checks({ where, live, version: newest, change }) {
  const version = useCalm(newest, 1);
  const { table, standing } = live;
  const { experiment } = where;
  const [state, setState] = useState({});
  const history = useOnce(of(experiment, "/history"));
  const best = standing.experiment.best;
  const tensors = useOnce(best?.weights_digest ? of(experiment, `/trials/${best.id}/tensors`) : "");
  const { told } = state;
  const { head } = standing;
  // A head is heard each second; tens of thousands of trials are not looked through as often.
  const stands = [standing.experiment.status, Boolean(head), head?.slots, Boolean(head?.why), best?.id].join();
  const lines = useMemo(() => promises({ table, standing, history, tensors, verified: told ?? null }), [table, version, stands, history, tensors, told]);
  const silent = useMemo(() => endings(table).silent, [table, version]);
  const verify = async () => {
    setState({ busy: true });
    try {
      setState({ told: await changeIt("POST", of(experiment, "/verify"), {}), at: new Date().toISOString() });
    } catch (error) {
      setState({ error });
    }
  };
  const found = () => receipt({ standing, table, lines, verified: told, at: state.at ?? new Date().toISOString() });
  return html`<main id="main"><div class="bar"><h1>Checks</h1>
      ${change ? html`<button type="button" class="main" onClick=${verify} disabled=${state.busy}>${state.busy ? "verifying …" : "verify"}</button>` : html`<span class="quiet">Verifying needs a link that may change things.</span>`}
      <button type="button" onClick=${() => save(write(found(), 2), "application/json", `${standing.experiment.id}-checks.json`)}>receipt as JSON</button>
      <button type="button" onClick=${() => save(receiptText(found()), "text/plain", `${standing.experiment.id}-checks.txt`)}>as text</button> <${Command} text=${COMMANDS.verify(experiment)} /></div>
    <${Problem} error=${state.error} />
    <${Panel} title="the ten promises, over this run" wide><ul class="checks" aria-live="polite">${lines.map((one) => html`<li class=${one.ok === null ? "open" : one.ok ? "ok" : "broken"}>
      <span class="sign" aria-hidden="true">${one.ok === null ? "·" : one.ok ? "✓" : "✗"}</span><span><span class="hidden">${one.ok === null ? "not checked: " : one.ok ? "holds: " : "broken: "}</span>${one.what} <span class="quiet" title="the promise that it is about">promise ${one.promise}</span>
        ${one.trials.length > 0 && html`<span class="warn"> ${one.but ?? "Not so:"} ${one.trials.slice(0, 20).map((trial) => html`<a href=${trialLink(experiment, trial)}>${trial}</a> `)}${one.trials.length > 20 ? `and ${count(one.trials.length - 20)} more` : ""}</span>`}</span>
      <span class="figure"><${Foreign} text=${one.figure} most=${300} /></span></li>`)}</ul>
      ${silent.length > 0 && html`<p class="quiet">${several(silent.length, "trial")} succeeded without a number as the result.</p>`}
      <p class="quiet">A dot stands where one run shows nothing either way. Tests break each promise: docs/reliability.md names them.</p><//>
    ${told && (told.damage.length > 0 || told.differences.length > 0 || told.mended) && html`<${Panel} title="what verify found" wide>
      ${told.mended && html`<p><${Foreign} text=${told.mended} /></p>`}
      <ul class="plain-list">${[...told.damage, ...told.differences].slice(0, 200).map((one) => html`<li class="warn"><${Foreign} text=${one} most=${1000} /></li>`)}</ul><//>`}
  </main>`;
}

/** An answer that is asked for once; null until it is there, or if it does not come. */
function useOnce(path) {
  const [told, setTold] = useState(null);
  useEffect(() => {
    let ended = false;
    setTold(null);
    if (path) get(path).then((answer) => ended || setTold(answer), () => {});
    return () => {
      ended = true;
    };
  }, [path]);
  return told;
}

function save(text, type, name) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob([text], { type }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}
