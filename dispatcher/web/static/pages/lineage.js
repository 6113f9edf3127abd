/** Who inherits from whom: all trials, over time or by generation. */
import { html, useEffect, useMemo, useState } from "../page/ui.js";
import { link, readTrials, trialLink } from "../page/route.js";
import { choose, go, here } from "../page/navigation.js";
import { family } from "../page/forest.js";
import { ForestView } from "../page/forest_view.js";
import { differences } from "../page/words.js";
import { Choose, Empty, Foreign, State, stateOf, useCalm } from "../page/widgets.js";
import { useTrial } from "./trial.js";
import { count, duration, number, several, signed, time } from "../page/format.js";

const COLOURS = [["rank", "rank of the result"], ["gain", "gain over the parent"], ["state", "how it ended"]];

export function Lineage({ where, live, version: newest }) {
  const { table } = live;
  const version = useCalm(newest, table.count > 20_000 ? 3 : table.count > 2000 ? 1 : 0.2);
  const { query, experiment } = where;
  const mode = live.standing.experiment.mode;
  const x = query.x === "generation" ? "generation" : "time";
  const by = COLOURS.some(([word]) => word === query.colour) ? query.colour : "rank";
  const [root] = readTrials(query.family, 1);
  const within = useMemo(() => (root === undefined ? null : family(table, table.rowOf(root))), [table, version, root]);
  const [pickedTrial] = readTrials(query.pick, 1);
  const picked = pickedTrial === undefined ? -1 : table.rowOf(pickedTrial);
  const start = useMemo(() => readView(query.view), []);
  const [height, setHeight] = useState(room());
  useEffect(() => {
    const resize = () => setHeight(room());
    addEventListener("resize", resize);
    return () => removeEventListener("resize", resize);
  }, []);
  const pick = (row) => choose({ pick: row < 0 ? null : table.number("trial", row) });
  const open = (row) => go(trialLink(experiment, table.number("trial", row)));
  const shown = within ? within.reduce((sum, one) => sum + one, 0) : table.count;
  if (!table.count) return html`<main id="main"><h1>Lineage</h1><${Empty}>There are no trials yet.<//></main>`;
  return html`<main id="main" class="lineage">
    <div class="bar"><h1>Lineage</h1>
      <${Choose} label="x" value=${x} options=${["time", "generation"]} onChange=${(word) => choose({ x: word === "time" ? null : word, view: null })} />
      <${Choose} label="colour" value=${by} options=${COLOURS} onChange=${(word) => choose({ colour: word === "rank" ? null : word })} />
      ${root !== undefined && html`<span class="tag">family of ${root} <button type="button" class="plain" aria-label="show all trials" onClick=${() => choose({ family: null, view: null })}>✕</button></span>`}
      <span class="quiet" role="status">${several(shown, "trial")}</span>
      <${Legend} by=${by} /></div>
    <div class=${picked >= 0 ? "beside" : ""}>
      <${ForestView} table=${table} version=${version} mode=${mode} x=${x} colours=${by} within=${within} picked=${picked} best=${table.best(mode)} height=${height}
        start=${start} onPick=${pick} onOpen=${open} onView=${(view) => choose({ view: writeView(view) })} />
      ${picked >= 0 && html`<${Picked} table=${table} row=${picked} mode=${mode} experiment=${experiment} />`}</div>
    <p class="quiet small-print">Wheel zooms (with shift only time), drag pans, a click picks, a double click opens. A bar is a trial from its start to its end; a line leaves the parent's end. The thick line leads to the best.</p>
  </main>`;
}

const room = () => Math.max(320, Math.min(1400, innerHeight - 250));

const writeView = (view) => [view.x0, view.x1, view.y0, view.y1].map((one) => Number(one.toPrecision(13))).join(",");

/** A view of the query; null if it is none. */
export function readView(text) {
  const parts = (text ?? "").split(",").map(Number);
  if (parts.length !== 4 || !parts.every(Number.isFinite)) return null;
  const [x0, x1, y0, y1] = parts;
  return x1 > x0 && y1 > y0 ? { x0, x1, y0, y1 } : null;
}

function Legend({ by }) {
  if (by === "rank") return html`<span class="legend"><span class="quiet">worst</span><span class="ramp" aria-hidden="true"></span><span class="quiet">best</span></span>`;
  if (by === "gain") return html`<span class="legend"><span class="swatch better"></span> better <span class="swatch worse"></span> worse than its parent</span>`;
  return html`<span class="legend">${["succeeded", "failed", "killed", "lost", "running"].map((word) => html`<span class=${`swatch fill-${word}`}></span> ${word} `)}</span>`;
}

function Picked({ table, row, mode, experiment }) {
  const trial = table.number("trial", row);
  const parent = table.get("parent", row);
  const mine = useTrial(experiment, trial, "");
  const theirs = useTrial(experiment, parent, "");
  const gain = table.numbers("gain", mode)[row];
  const words = mine.told && theirs.told ? differences(theirs.told.trial.parameters, mine.told.trial.parameters).filter((one) => !/^(save|restore)_path$/.test(one.name)) : [];
  const children = table.children.get(row) ?? [];
  return html`<aside class="panel picked" aria-label=${`trial ${trial}`} aria-live="polite">
    <header><h2><a href=${trialLink(experiment, trial)}>Trial ${trial}</a></h2><div class="side"><button type="button" class="plain" aria-label="close" onClick=${() => choose({ pick: null })}>✕</button></div></header>
    <p><${State} word=${stateOf(table.get("state", row), table.get("outcome", row))} /> <b>${number(table.get("value", row), 6)}</b> ${Number.isNaN(gain) ? "" : html`<span class="quiet">${signed(gain)} over its parent</span>`}</p>
    <dl class="pairs"><div><dt>parent</dt><dd>${parent === null ? "–" : html`<a href=${link(experiment, "lineage", { ...keep(), pick: parent })}>${parent}</a>`}</dd></div>
      <div><dt>generation</dt><dd>${count(table.get("generation", row))}</dd></div><div><dt>started</dt><dd>${time(table.get("started", row))}</dd></div>
      <div><dt>took</dt><dd>${duration(table.numbers("took")[row])}</dd></div><div><dt>children</dt><dd>${count(children.length)}</dd></div></dl>
    ${words.length > 0 && html`<ul class="words">${words.slice(0, 12).map((one) => html`<li><${Foreign} text=${one.words} most=${160} /></li>`)}</ul>`}
    <p class="buttons"><button type="button" onClick=${() => choose({ family: trial, view: null })}>only its family</button>
      ${parent !== null && html`<button type="button" onClick=${() => go(link(experiment, "compare", { trials: `${trial},${parent}` }))}>compare with ${parent}</button>`}</p></aside>`;
}

const keep = () => Object.fromEntries(["x", "colour", "family", "at"].map((name) => [name, here().query[name] ?? ""]));
