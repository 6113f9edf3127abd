/** Plots that the server computes: the same numbers as the pictures of `bequeath plot`. */
import { html } from "../page/ui.js";
import { of } from "../page/api.js";
import { link } from "../page/route.js";
import { choose } from "../page/navigation.js";
import { COMMANDS } from "../page/commands.js";
import { Choose, Command, Foreign, Panel, Problem, useCalm } from "../page/widgets.js";
import { brief } from "../page/safe.js";
import { count, several } from "../page/format.js";
import { Contour, Hypervolume, Importance, Parallel, Pareto, Slices } from "../page/plots.js";
import { usePlot } from "../page/plotted.js";
import { Slots } from "../page/slots.js";
import { Timeline } from "../page/timeline.js";

const KINDS = {
  importance: ["importance", Importance, ["metric", "seed"]],
  slice: ["slices", Slices, ["metric", "parameters"]],
  contour: ["contour", Contour, ["metric", "x", "y"]],
  parallel: ["parallel", Parallel, ["metric", "many"]],
  pareto: ["Pareto front", Pareto, ["objectives"]],
  hypervolume: ["hypervolume", Hypervolume, ["objectives"]],
  timeline: ["timeline", Timeline, ["worker"]],
  slots: ["slots and why", Slots, ["last"]],
};
const OPTIONS = { metric: "--metric", seed: "--seed", x: "--x", y: "--y", many: "-n", parameters: "-p", objectives: "--objective", worker: "--worker", last: "--last" };

/** Seconds between two questions while the search goes on. */
const CALM_S = 15;

/** What is chosen, as pairs of names and values; several values are several pairs. Pure. */
export function pairs(kind, query) {
  return KINDS[kind][2].flatMap((name) => {
    if (!query[name]) return [];
    if (name !== "objectives") return [[name, query[name]]];
    return objectives(query).map((one) => [name, one]);
  });
}

/** Objectives of an address. Pure. */
export function objectives(query) {
  try {
    const told = JSON.parse(query.objectives ?? "[]");
    return Array.isArray(told) ? told.filter((one) => typeof one === "string").slice(0, 6) : [];
  } catch {
    return [];
  }
}

export function Plots({ where, live, version }) {
  const { experiment, query } = where;
  const kind = KINDS[query.kind] ? query.kind : "importance";
  const calm = useCalm(version, CALM_S);
  const chosen = pairs(kind, query);
  const text = chosen.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  const asked = text ? `?${text}` : "";
  const { data, error, busy } = usePlot(of(experiment, `/plots/${kind}${asked}`), calm);
  const [word, Drawn] = KINDS[kind];
  return html`<main id="main"><div class="bar"><h1>Plots</h1>
      <nav class="kinds" aria-label="plots">${Object.entries(KINDS).map(([one, [title]]) => html`<a key=${one} href=${link(experiment, "plots", { kind: one })} aria-current=${one === kind ? "page" : undefined}>${title}</a>`)}</nav>
      <span class="quiet" role="status">${busy ? "Computing …" : ""}</span></div>
    <${Problem} error=${error}>${chosen.length > 0 && html`<p><a href=${link(experiment, "plots", { kind })}>Choose anew</a></p>`}<//>
    ${data && html`<${Panel} title=${word} wide side=${data.used === undefined ? "" : data.used < data.results ? `${count(data.used)} of ${several(data.results, "result")}` : several(data.results, "result")}>
      <${Metric} data=${data} query=${query} />
      <${Drawn} data=${data} query=${query} experiment=${experiment} mode=${live.standing.experiment.mode} />
      <${Notes} data=${data} />
      <p class="as-command"><a href=${`api/v1${of(experiment, `/pictures/${kind}${asked}`)}`} download=${`${experiment}-${kind}.png`}>as PNG</a> <span class="quiet">or by</span>
        <${Command} text=${COMMANDS.plot(experiment, kind, chosen.map(([name, value]) => [OPTIONS[name], value]))} /></p><//>`}
  </main>`;
}

function Metric({ data, query }) {
  if (data.metric === undefined || data.metrics.length < 2) return null;
  const options = data.metrics.map((one) => [one, brief(one, 40)]);
  return html`<div class="bar small"><${Choose} label="result" value=${query.metric ?? "default"} options=${options} onChange=${(name) => choose({ metric: name === "default" ? null : name })} /></div>`;
}

function Notes({ data }) {
  return html`${data.notes.length > 0 && html`<ul class="plain-list quiet notes">${data.notes.map((note) => html`<li>${note}</li>`)}</ul>`}
    ${data.rest?.length > 0 && html`<details><summary>${several(data.rest.length, "parameter")} left out</summary><p class="quiet">${data.rest.map((name, at) => html`${at ? ", " : ""}<${Foreign} text=${name} most=${80} />`)}</p></details>`}`;
}
