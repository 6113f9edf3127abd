/** Workers, their slots, their devices, and the trials that have them. */
import { html, useMemo } from "../page/ui.js";
import { link, trialLink } from "../page/route.js";
import { Empty, Foreign, Panel } from "../page/widgets.js";
import { bytes, count, duration, number, several } from "../page/format.js";

const MOST = 500;

export function Hosts({ where, live, version }) {
  const { head } = live.standing;
  const { experiment } = where;
  const rows = useMemo(() => (head ? joined(head) : []), [head]);
  const past = useMemo(() => (head ? [] : [...live.table.tally("worker")].sort((a, b) => b[1] - a[1])), [head, live.table, version]);
  if (!head) {
    return html`<main id="main"><h1>Hosts</h1><p class="quiet">No head answers: which workers there are now is not known.</p>
      <${Panel} title="where trials ran last">${past.length === 0 ? html`<${Empty}>None ran.<//>` : html`<ul class="plain-list">${past.slice(0, MOST).map(([name, many]) => html`<li><a href=${link(experiment, "trials", { where: `worker='${name.replace(/'/g, "")}'` })}><${Foreign} text=${name} /></a> <span class="quiet">${several(many, "trial")}</span></li>`)}</ul>`}<//></main>`;
  }
  const busy = rows.reduce((sum, one) => sum + one.worker.busy, 0);
  const slots = rows.reduce((sum, one) => sum + one.worker.slots, 0);
  return html`<main id="main"><div class="bar"><h1>Hosts</h1><span class="quiet" role="status">${several(rows.length, "worker")} · ${count(busy)} of ${several(slots, "slot")} busy · ${several((head.devices ?? []).length, "GPU")}</span></div>
    ${rows.length === 0 ? html`<${Empty}>No worker is there yet.<//>` : html`<div class="hosts">${rows.slice(0, MOST).map((one) => html`<${Host} key=${one.worker.name} ...${one} experiment=${experiment} />`)}</div>`}
    ${rows.length > MOST && html`<p class="quiet">The first ${count(MOST)} are shown.</p>`}</main>`;
}

/** Workers with their devices and running trials. Pure. */
export function joined(head) {
  return head.workers.map((worker) => ({
    worker,
    devices: (head.devices ?? []).filter((one) => one.worker === worker.name).sort((a, b) => a.index - b.index),
    running: head.running.filter((one) => one.worker === worker.name),
  }));
}

const Meter = ({ part, label, text }) => html`<span class="meter" role="img" aria-label=${`${label}: ${text}`}><span style=${{ width: `${Math.round(100 * Math.min(1, Math.max(0, part || 0)))}%` }}></span></span>`;

function Host({ worker, devices, running, experiment }) {
  return html`<section class=${`panel host${worker.alive ? "" : " dead"}`} aria-label=${worker.name}>
    <header><h2><${Foreign} text=${worker.name} most=${80} /></h2><div class="side">${worker.alive ? html`<span class="ok">✓ answers</span>` : worker.waiting ? html`… <${Foreign} text=${worker.waiting} most=${200} />` : html`<span class="warn">✗ silent</span>`}</div></header>
    <p>${worker.busy} of ${several(worker.slots, "slot")} busy <${Meter} part=${worker.slots ? worker.busy / worker.slots : 0} label="slots" text=${`${worker.busy} of ${worker.slots}`} />
      ${worker.waits_s !== null && worker.waits_s !== undefined ? html`<span class="quiet"> waits for ${duration(worker.waits_s)}</span>` : ""}
      ${worker.ends_in_s !== null && worker.ends_in_s !== undefined ? html`<span class="quiet"> its allocation ends in ${duration(worker.ends_in_s)}</span>` : ""}
      ${worker.way ? html`<span class="quiet"> reached by <${Foreign} text=${worker.way} /></span>` : ""}</p>
    ${devices.length > 0 && html`<ul class="devices">${devices.map((one) => html`<li key=${one.id}>
      <span><b>GPU ${one.index}</b> <span class="quiet"><${Foreign} text=${one.name} most=${40} /></span></span>
      <span><${Meter} part=${(one.utilization ?? 0) / 100} label="utilization" text=${`${number(one.utilization)} %`} /> ${one.utilization === null ? "–" : `${Math.round(one.utilization)} %`}</span>
      <span><${Meter} part=${(one.used_bytes ?? 0) / one.memory_bytes} label="memory" text=${`${bytes(one.used_bytes)} of ${bytes(one.memory_bytes)}`} /> ${bytes(one.used_bytes)} of ${bytes(one.memory_bytes)}</span>
      <span class="quiet">${one.celsius !== null ? `${Math.round(one.celsius)} °C ` : ""}${one.watts !== null ? `${Math.round(one.watts)} W ` : ""}${one.old_s > 30 ? `measured ${duration(one.old_s)} ago` : ""}</span>
      <span>${one.trials.length ? one.trials.map((trial) => html`<a href=${trialLink(experiment, trial)}>${trial}</a> `) : html`<span class="quiet">free</span>`}</span>
      ${one.trouble && html`<span class="warn">⚠ <${Foreign} text=${one.trouble} most=${200} /></span>`}</li>`)}</ul>`}
    ${running.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label=${`trials on ${worker.name}`}><table class="list small"><thead><tr><th scope="col">trial</th><th scope="col">for</th><th scope="col" class="right">CPU</th><th scope="col" class="right">memory</th><th scope="col" class="right">GPU memory</th><th scope="col">newest metric</th></tr></thead>
      <tbody>${running.slice(0, 64).map((one) => html`<tr key=${one.trial}><th scope="row"><a href=${trialLink(experiment, one.trial)}>${one.trial}</a></th><td>${duration(one.for_s)}</td><td class="right">${one.cpu === undefined ? "–" : `${Math.round(one.cpu)} %`}</td><td class="right">${bytes(one.rss_bytes)}</td><td class="right">${bytes(one.gpu_bytes)}</td><td>${one.last === null ? "–" : html`<${Foreign} text=${Number.isFinite(Number(one.last)) ? number(Number(one.last)) : one.last} most=${40} />`}</td></tr>`)}</tbody></table></div>`}
  </section>`;
}
