/** Which slot of which worker had which attempt, and when. */
import { html, useMemo, useState } from "./ui.js";
import { trialLink } from "./route.js";
import { choose, go } from "./navigation.js";
import { colour } from "./colours.js";
import { Picture, fitted } from "./picture.js";
import { Rows, toTrial } from "./plots.js";
import { Choose, Empty, Foreign, State } from "./widgets.js";
import { brief } from "./safe.js";
import { count, duration, several, time } from "./format.js";

const LANE = 18;
const MOST_LANES = 200;
const ROWS = 200;
/** Colours of the style sheet; how high a bar is tells them apart without hue. */
const LOOKS = { succeeded: ["state-succeeded", 1], running: ["state-running", 1], failed: ["state-failed", 0.55], lost: ["state-lost", 0.25] };
const OTHERS = ["state-killed", 0.4];

/** What is shown of a span after a key: [from, to] as shares. Pure. */
export function zoomed([from, to], key) {
  const [size, middle] = [to - from, (from + to) / 2];
  if (key === "+" || key === "=") return kept(middle - size / 4, middle + size / 4);
  if (key === "-") return kept(middle - size, middle + size);
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const step = Math.max(-from, Math.min(1 - to, (key === "ArrowLeft" ? -size : size) / 4));
    return [from + step, to + step];
  }
  return key === "0" ? [0, 1] : null;
}

const kept = (from, to) => [Math.max(0, from), Math.min(1, to)];

export function Timeline({ data, experiment, query }) {
  const [span, setSpan] = useState([0, 1]);
  const lanes = data.lanes.slice(0, MOST_LANES);
  const workers = [...new Set(data.lanes.map((one) => one.worker))];
  const draw = useMemo(() => (pen, width) => bars(pen, data, lanes, span, width), [data, span]);
  const move = (key) => {
    const next = zoomed(span, key);
    if (next) setSpan(next);
    return next;
  };
  if (!data.trials.length) return html`<${Empty}>No attempt has started yet.<//>`;
  const outcomes = [...new Set(data.outcomes)].sort();
  const newest = data.trials.map((_, at) => at).reverse().slice(0, ROWS);
  const took = data.until - data.begin;
  return html`<div class="bar small">
      ${(workers.length > 1 || query.worker) && html`<${Choose} label="worker" value=${query.worker ?? ""} options=${[["", "all"], ...workers.map((one) => [one, brief(one, 40)])]} onChange=${(worker) => choose({ worker: worker || null })} />`}
      <span class="legend">${outcomes.map((word) => html`<span class="outcome"><span class="swatch" style=${{ background: `var(--${(LOOKS[word] ?? OTHERS)[0]})`, height: `${12 * (LOOKS[word] ?? OTHERS)[1]}px` }}></span> <${State} word=${word} /></span>`)}</span>
      <span class="buttons">${[["+", "zoom in"], ["-", "zoom out"], ["ArrowLeft", "earlier", "←"], ["ArrowRight", "later", "→"], ["0", "all of it", "all"]].map(([key, title, sign]) => html`<button type="button" class="small" title=${title} aria-label=${title} onClick=${() => move(key)}>${sign ?? key.replace("-", "−")}</button>`)}</span></div>
    <${Picture} draw=${draw} data=${data} height=${lanes.length * LANE + 34} label=${`${several(data.trials.length, "attempt")} in ${several(lanes.length, "slot")} over ${duration(took)}; keys + − 0 and arrows zoom; the newest are in the table below`}
      onPick=${(trial) => go(trialLink(experiment, trial))} onKey=${(event) => !event.ctrlKey && !event.metaKey && !event.altKey && move(event.key) && (event.preventDefault(), event.stopPropagation())} />
    ${data.lanes.length > lanes.length && html`<p class="quiet">${count(lanes.length)} of ${several(data.lanes.length, "slot")}.</p>`}
    <${Rows} title="slots" head=${["worker", "slot", "busy", "share"]} rows=${lanes.map((one) => [html`<${Foreign} text=${one.worker} most=${60} />`, one.slot, duration(one.busy_s), took > 0 ? `${Math.round((100 * one.busy_s) / took)} %` : "–"])} />
    <${Rows} title="the newest attempts" of=${data.trials.length} head=${["trial", "attempt", "worker", "slot", "GPUs", "began", "took", "outcome"]} rows=${newest.map((at) => [
    toTrial(experiment, data.trials[at]), data.attempts[at], html`<${Foreign} text=${data.lanes[data.lane[at]].worker} most=${60} />`, data.lanes[data.lane[at]].slot,
    html`<${Foreign} text=${(data.gpus[at] ?? []).join(", ") || "–"} most=${80} />`, time(data.starts[at]), duration((data.ends[at] ?? data.until) - data.starts[at]), html`<${State} word=${data.outcomes[at]} />`])} />`;
}

function bars(pen, data, lanes, [from, to], width) {
  const left = Math.min(130, width / 4);
  const all = data.until - data.begin || 1;
  const x = (moment) => left + (((moment - data.begin) / all - from) / (to - from)) * (width - left - 10);
  const bottom = lanes.length * LANE;
  pen.textAlign = "right";
  lanes.forEach((one, at) => {
    pen.fillStyle = colour(at % 2 ? "hover" : "panel");
    pen.fillRect(left, at * LANE, width - left, LANE);
    pen.fillStyle = colour("quiet");
    pen.fillText(fitted(pen, `${brief(one.worker, 40)} ${one.slot}`, left - 10), left - 5, at * LANE + 13);
  });
  const tints = new Map();
  const spots = [];
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, width - left, bottom);
  pen.clip();
  data.trials.forEach((trial, at) => {
    const [x0, x1] = [x(data.starts[at]), x(data.ends[at] ?? data.until)];
    if (data.lane[at] >= lanes.length || x1 < left || x0 > width) return;
    const word = data.outcomes[at];
    const [name, part] = LOOKS[word] ?? OTHERS;
    if (!tints.has(name)) tints.set(name, colour(name));
    pen.fillStyle = tints.get(name);
    const [y, size] = [data.lane[at] * LANE, (LANE - 4) * part];
    const wide = Math.max(1, x1 - x0 - (x1 - x0 > 4 ? 1 : 0));
    pen.fillRect(x0, y + (LANE - size) / 2, wide, size);
    if (wide > 34 && part === 1) {
      pen.fillStyle = colour("panel");
      pen.textAlign = "left";
      const gpus = (data.gpus[at] ?? []).join(",");
      pen.fillText(fitted(pen, gpus && wide > 90 ? `${trial} · ${brief(gpus, 30)}` : String(trial), wide - 6), Math.max(x0, left) + 3, y + 13);
    }
    spots.push([Math.max(left, Math.min(x1, Math.max(x0, (x0 + x1) / 2))), y + LANE / 2, trial]);
  });
  pen.restore();
  pen.fillStyle = colour("quiet");
  for (let at = 0; at <= 4; at += 1) {
    const moment = data.begin + all * (from + ((to - from) * at) / 4);
    pen.textAlign = at === 0 ? "left" : at === 4 ? "right" : "center";
    pen.fillText(time(moment), x(moment), bottom + 16);
  }
  return spots;
}
