/** The trackers that a search is fed into: how far each is, and what is in its way. */
import { html } from "./ui.js";
import { Foreign, Panel } from "./widgets.js";
import { ago, count } from "./format.js";

/** How far a tracker is, in the words of `bequeath status`. Pure. */
export const lag = ({ behind, taken }) =>
  behind > 0 ? `${count(behind)} ${behind === 1 ? "trial" : "trials"} behind` : `up to date, ${count(taken)} ${taken === 1 ? "trial" : "trials"}`;

export function Trackers({ sinks, now }) {
  if (!sinks?.length) return null;
  return html`<${Panel} title="trackers" side="fed beside the search"><ul class="plain-list trackers">${sinks.map((one) => html`<li key=${one.name}>
    <b><${Foreign} text=${one.name} most=${60} /></b> ${one.kind !== one.name && html`<span class="quiet"><${Foreign} text=${one.kind} most=${40} /></span> `}
    <span class=${one.error ? "warn" : one.behind ? "" : "ok"}>${one.error ? "⚠ " : one.behind ? "" : "✓ "}${lag(one)}</span>
    ${one.heard_at !== null && html`<span class="quiet"> · took all there was ${ago(one.heard_at, now)}</span>`}
    <div class="quiet"><${Foreign} text=${one.target} most=${200} /></div>
    ${one.error && html`<div class="warn"><${Foreign} text=${one.error} most=${500} /></div>`}</li>`)}</ul><//>`;
}
