/** Which tensors of a trial came from whom: a picture, by ancestor, and a table by part of the model. */
import { html, useEffect, useState } from "./ui.js";
import { get, of } from "./api.js";
import { COMMANDS } from "./commands.js";
import { trialLink } from "./route.js";
import { Command, Empty, Foreign, Panel, Problem } from "./widgets.js";
import { bytes, count, several } from "./format.js";

const KINDS = ["unchanged", "changed", "resized", "new", "written"];
const MOST_GROUPS = 60;
const MOST_TENSORS = 300;

/** Bytes by what became of them, in the order of KINDS. Pure. */
export function shares(changes, whole) {
  return KINDS.filter((kind) => changes[kind]).map((kind) => ({ kind, ...changes[kind], part: whole ? changes[kind].bytes / whole : 0 }));
}

export function Tensors({ experiment, trial, committed }) {
  const [state, setState] = useState({});
  useEffect(() => {
    let ended = false;
    setState({});
    get(of(experiment, `/trials/${trial}/tensors`)).then((told) => ended || setState({ told }), (error) => ended || setState({ error }));
    return () => {
      ended = true;
    };
  }, [experiment, trial, committed]);
  const { told, error } = state;
  return html`<${Panel} title="tensors: from whom" wide side=${told && !told.why ? `${several(told.count, "tensor")}, ${bytes(told.bytes)}` : ""}>
    <${Problem} error=${error} />
    ${!told && !error && html`<p class="quiet">Reading the manifests …</p>`}
    ${told?.why && html`<${Empty}>No tensors are known: <${Foreign} text=${told.why} most=${600} /><//>`}
    ${told && !told.why && html`<${Found} told=${told} experiment=${experiment} />`}
    <p class="as-command"><${Command} text=${COMMANDS.tensors(experiment, trial)} /></p><//>`;
}

function Found({ told, experiment }) {
  const all = shares(told.changes, told.bytes);
  const against = told.parent === null ? "" : html` against <a href=${trialLink(experiment, told.parent)}>${told.parent}</a>`;
  return html`<div class="origins" role="img" aria-label=${`bytes: ${all.map((one) => `${one.kind} ${Math.round(100 * one.part)} %`).join(", ")}`}>${all.map((one) => html`<span class=${`tensor-${one.kind}`} style=${{ width: `${100 * one.part}%` }}></span>`)}</div>
    <p class="legend">${all.map((one) => html`<span><span class=${`key tensor-${one.kind}`} aria-hidden="true"></span> ${one.kind} <b>${count(one.tensors)}</b> <span class="quiet">(${bytes(one.bytes)})</span></span>`)}${told.gone.length > 0 && html`<span>gone <b>${count(told.gone.length)}</b></span>`}<span class="quiet">${against}</span></p>
    <h3>first written by</h3>
    <ul class="bars ancestors">${told.ancestors.slice(0, 30).map((one) => html`<li key=${`${one.trial} ${one.generations}`}>
      <span>${one.trial === told.trial ? "this trial" : one.trial === null ? "not known" : html`<a href=${trialLink(experiment, one.trial)}>trial ${one.trial}</a>`} <span class="quiet">${one.generations ? `${several(one.generations, "generation")} ago` : ""}</span></span>
      <span class="track"><span style=${{ width: `${told.bytes ? Math.max(0.5, (100 * one.bytes) / told.bytes) : 0}%` }}></span></span>
      <span class="right">${bytes(one.bytes)} <span class="quiet">(${count(one.tensors)})</span></span></li>`)}</ul>
    <${Table} label="parts of the model" heads=${["part", "tensors", "bytes", "what became of them", "written by"]} rows=${told.groups.slice(0, MOST_GROUPS).map((one) => [
      html`<${Foreign} text=${one.name || "(all)"} most=${160} />`, count(one.tensors), bytes(one.bytes), html`<${Kinds} changes=${one.changes} />`, html`<${From} origins=${one.origins} own=${told.trial} experiment=${experiment} />`])} />
    <details><summary>tensor by tensor</summary><${Table} label="tensors" heads=${["tensor", "change", "shape", "bytes", "before", "written by"]} rows=${told.tensors.slice(0, MOST_TENSORS).map((one) => [
      html`<${Foreign} text=${one.name} most=${200} />`, one.change, `${one.dtype} ${one.shape.join("×") || "scalar"}`, bytes(one.bytes), html`<${Foreign} text=${one.was || one.before} most=${200} />`, html`<${From} origins=${one.origin === null ? [] : [one.origin]} own=${told.trial} experiment=${experiment} />`])} />
      ${told.count > Math.min(MOST_TENSORS, told.tensors.length) && html`<p class="quiet">The first ${count(Math.min(MOST_TENSORS, told.tensors.length))} of ${count(told.count)}.</p>`}
      ${told.gone.length > 0 && html`<p class="quiet">Only the parent has: <${Foreign} text=${told.gone.slice(0, 40).join(", ")} most=${2000} /></p>`}</details>
    ${told.notes.map((one) => html`<p class="quiet"><${Foreign} text=${one} most=${400} /></p>`)}`;
}

const Kinds = ({ changes }) => html`${shares(changes, 0).map((one, place) => html`${place ? ", " : ""}<span class=${`key tensor-${one.kind}`} aria-hidden="true"></span> ${count(one.tensors)} ${one.kind}`)}`;

const From = ({ origins, own, experiment }) => html`${origins.slice(0, 8).map((one, place) => html`${place ? ", " : ""}${one === own ? "itself" : html`<a href=${trialLink(experiment, one)}>${one}</a>`}`)}`;

const Table = ({ label, heads, rows }) => html`<div class="scroll tall" tabindex="0" role="region" aria-label=${label}><table class="list small"><thead><tr>${heads.map((one) => html`<th scope="col">${one}</th>`)}</tr></thead>
  <tbody>${rows.map((cells, at) => html`<tr key=${at}>${cells.map((cell, place) => (place ? html`<td>${cell}</td>` : html`<th scope="row">${cell}</th>`))}</tr>`)}</tbody></table></div>`;
