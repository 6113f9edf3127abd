/** Plots of parameters and objectives, drawn from what the server computed. */
import { html, useMemo, useState } from "./ui.js";
import { trialLink } from "./route.js";
import { choose, go } from "./navigation.js";
import { LINES, STEPS, colour, ramp } from "./colours.js";
import { drawLines } from "./parallel.js";
import { Picture, dot, frame, marks, resultAxis, share, star, titled, worded } from "./picture.js";
import { Choose, Empty, Foreign } from "./widgets.js";
import { brief } from "./safe.js";
import { count, duration, number, several } from "./format.js";

const ROWS = 50;
const CHOSEN = { all: "in the order of their importance", importance: "the most important ones", correlation: "those that results follow most", named: "as chosen" };

/** Places from the worst to the best, from 0 to 1, for colours. Pure. */
export function ranks(values, mode) {
  const order = values.map((_, at) => at).sort((a, b) => values[a] - values[b]);
  const found = new Float64Array(values.length);
  order.forEach((at, place) => {
    const part = values.length > 1 ? place / (values.length - 1) : 1;
    found[at] = mode === "minimize" ? 1 - part : part;
  });
  return found;
}

/** The same as a table, for those who do not see the picture, or want numbers. */
export const Rows = ({ title, head, rows, of }) => html`<details class="rows"><summary>${title}${of > rows.length ? html` <span class="quiet">${count(rows.length)} of ${count(of)}</span>` : ""}</summary>
  <div class="scroll tall" tabindex="0" role="region" aria-label=${title}><table class="list small"><thead><tr>${head.map((one) => html`<th scope="col"><${Foreign} text=${one} most=${40} /></th>`)}</tr></thead>
  <tbody>${rows.map((row) => html`<tr>${row.map((one) => html`<td>${one}</td>`)}</tr>`)}</tbody></table></div></details>`;

export const toTrial = (experiment, trial) => html`<a href=${trialLink(experiment, trial)}>${trial}</a>`;

/** Places of the best results, at most so many. Pure. */
export const bestOf = (values, mode, most = ROWS) =>
  values.map((_, at) => at).sort((a, b) => (mode === "minimize" ? values[a] - values[b] : values[b] - values[a]) || a - b).slice(0, most);

export function Importance({ data }) {
  const bars = [...(data.inherited ? [data.inherited] : []), ...data.judged];
  const most = Math.max(...bars.map((one) => one.importance), 1e-9);
  if (!bars.length) return html`<${Empty}>Nothing can be judged yet.<//>`;
  return html`<p>${data.reliable ? "" : html`<b>Not reliable.</b> `}A model of ${several(data.fitted, "trial")} explains <b>${number(Math.max(0, data.explained) * 100, 3)} %</b> of the variance of results that it has not seen.</p>
    <p class="quiet">A bar is what it explains less when the values of this parameter are shuffled, with the standard error. Trials that a tuner did not try say nothing.</p>
    <ul class="gains importance">${bars.map((one) => html`<li key=${one.name}><span><${Foreign} text=${one.name} most=${60} /></span>
      <span class=${`track${one === data.inherited ? " inherited" : ""}`} aria-hidden="true"><span style=${{ width: `${(100 * Math.max(0, one.importance)) / most}%` }}></span></span>
      <span class="right">${number(Math.max(0, one.importance), 3)} <span class="quiet">± ${number(one.error, 2)}</span></span></li>`)}</ul>
    ${data.alike.length > 0 && html`<p class="quiet">Rise and fall together: ${data.alike.map(([a, b], at) => html`${at ? "; " : ""}<${Foreign} text=${a} most=${60} /> and <${Foreign} text=${b} most=${60} />`)}.</p>`}`;
}

export function Slices({ data, experiment, query }) {
  if (!data.slices.length || !data.trials.length) return html`<${Empty}>No results with parameters that differ.<//>`;
  const options = [["", CHOSEN[data.chosen_by === "named" ? "importance" : data.chosen_by]], ...data.parameters.map((one) => [one, brief(one, 40)])];
  const result = resultAxis(data.metric, data.values);
  return html`<div class="bar small"><${Choose} label="parameters" value=${query.parameters ?? ""} options=${options} onChange=${(name) => choose({ parameters: name || null })} /></div>
    <div class="grid slices">${data.slices.map((one) => html`<${Slice} key=${one.axis.name} data=${data} one=${one} result=${result} experiment=${experiment} />`)}</div>
    <${Rows} title="medians" head=${["parameter", "near", "median", "trials"]} rows=${data.slices.flatMap((one) => one.trend.map((point) => [html`<${Foreign} text=${one.axis.name} most=${40} />`, html`<${Foreign} text=${worded(one.axis, point.at)} />`, number(point.median), count(point.count)]))} />
    <${Best} data=${data} experiment=${experiment} axes=${data.slices.map((one) => one.axis)} at=${data.slices.map((one) => one.at)} />`;
}

function Slice({ data, one, result, experiment }) {
  const draw = useMemo(() => (pen, width, height) => {
    const { px, py } = frame(pen, { x: one.axis, y: result, width, height });
    const spots = data.trials.map((trial, at) => [px(share(one.axis, one.at[at])), py(share(result, data.values[at])), trial]);
    pen.fillStyle = colour("dot");
    pen.globalAlpha = spots.length > 300 ? 0.35 : 0.7;
    spots.forEach(([x, y]) => dot(pen, x, y, 2));
    pen.globalAlpha = 1;
    pen.strokeStyle = pen.fillStyle = colour("line-1");
    pen.lineWidth = 2;
    pen.beginPath();
    one.trend.forEach((point) => {
      const [x, y] = [px(share(one.axis, point.at)), py(share(result, point.median))];
      if (one.axis.kind === "choice") pen.fillRect(x - 8, y - 1.5, 16, 3);
      else pen.lineTo(x, y);
    });
    pen.stroke();
    const best = data.trials.indexOf(data.best);
    if (best >= 0) star(pen, ...spots[best].slice(0, 2));
    return spots;
  }, [data, one]);
  return html`<${Picture} draw=${draw} data=${data} height=${220} onPick=${(trial) => go(trialLink(experiment, trial))} label=${`${count(data.trials.length)} results over ${titled(one.axis)}; medians are in the table below`} />`;
}

export function Contour({ data, experiment, query }) {
  const options = (other) => [["", "an important one"], ...data.parameters.filter((name) => name !== other).map((name) => [name, brief(name, 40)])];
  const draw = useMemo(() => (pen, width, height) => data.x && data.y && field(pen, data, width, height), [data]);
  const chooser = html`<div class="bar small">
    <${Choose} label="x" value=${query.x ?? ""} options=${options(data.y?.name)} onChange=${(name) => choose({ x: name || null, y: query.y ?? data.y?.name })} />
    <${Choose} label="y" value=${query.y ?? ""} options=${options(data.x?.name)} onChange=${(name) => choose({ y: name || null, x: query.x ?? data.x?.name })} />
    ${data.x && html`<span class="legend">worse <span class="ramp"></span> better</span>`}</div>`;
  if (!data.x || !data.y || !data.trials.length) return html`${chooser}<${Empty}>No results over two parameters.<//>`;
  const means = data.grid.flatMap((row, y) => row.map((mean, x) => [mean, x, y])).filter(([mean]) => mean !== null);
  const order = bestOf(means.map(([mean]) => mean), data.mode);
  return html`${chooser}
    <${Picture} draw=${draw} data=${data} height=${460} onPick=${(trial) => go(trialLink(experiment, trial))} label=${`mean ${data.metric} over ${titled(data.x)} and ${titled(data.y)}; the best places are in the table below`} />
    <${Rows} title="the best places" of=${means.length} head=${[data.x.name, data.y.name, "mean"]} rows=${order.map((at) => [html`<${Foreign} text=${worded(data.x, data.grid_x[means[at][1]])} />`, html`<${Foreign} text=${worded(data.y, data.grid_y[means[at][2]])} />`, number(means[at][0])])} />
    <${Best} data=${data} experiment=${experiment} axes=${[data.x, data.y]} at=${[data.at_x, data.at_y]} />`;
}

function field(pen, data, width, height) {
  const plain = (axis) => ({ ...axis, missing: 0 }); // only trials that have both are here
  const [x, y] = [plain(data.x), plain(data.y)];
  const margin = (axis) => (axis.kind === "choice" ? 0.5 / Math.max(1, axis.choices.length) : 0);
  const inner = (axis) => (value) => margin(axis) + share(axis, value) * (1 - 2 * margin(axis));
  const { px, py } = frame(pen, { x, y, left: 90, width, height });
  const [ax, ay] = [inner(x), inner(y)];
  const known = data.grid.flat().filter((one) => one !== null);
  const [low, high] = known.reduce(([a, b], one) => [Math.min(a, one), Math.max(b, one)], [Infinity, -Infinity]);
  const colours = ramp();
  const size = (at, places) => (places.length > 1 ? Math.abs(at(places[1]) - at(places[0])) : 1);
  const [w, h] = [size((one) => px(ax(one)), data.grid_x) + 0.5, size((one) => py(ay(one)), data.grid_y) + 0.5];
  data.grid.forEach((row, at) => row.forEach((mean, place) => {
    if (mean === null) return;
    const part = high > low ? (mean - low) / (high - low) : 0.5;
    pen.fillStyle = colours[Math.round((data.mode === "minimize" ? 1 - part : part) * (STEPS - 1))];
    pen.fillRect(px(ax(data.grid_x[place])) - w / 2, py(ay(data.grid_y[at])) - h / 2, w, h);
  }));
  pen.strokeStyle = colour("text");
  pen.globalAlpha = 0.6;
  for (const line of data.lines) {
    pen.beginPath();
    line.x.forEach((one, at) => pen.lineTo(px(ax(one)), py(ay(line.y[at]))));
    pen.stroke();
  }
  pen.globalAlpha = 1;
  const spots = data.trials.map((trial, at) => [px(ax(data.at_x[at])), py(ay(data.at_y[at])), trial]);
  pen.fillStyle = colour("panel");
  spots.forEach(([a, b]) => {
    dot(pen, a, b, 2.5);
    pen.stroke();
  });
  const best = data.trials.indexOf(data.best);
  if (best >= 0) star(pen, ...spots[best].slice(0, 2));
  pen.fillStyle = colour("text");
  pen.textAlign = "left";
  pen.fillText(titled(y, 40), 4, 10);
  return spots;
}

export function Parallel({ data, experiment, query }) {
  const made = useMemo(() => {
    const result = resultAxis(data.metric, data.values);
    const every = [...data.axes, result].map((axis, place) => {
      const words = marks(axis);
      const column = data.at[place] ?? data.values;
      return { name: axis.name, log: axis.kind === "log", low: words[0]?.[1] ?? "", high: words.at(-1)?.[1] ?? "", at: (row) => share(axis, column[row]) ?? NaN };
    });
    return { axes: every, rows: data.trials.map((_, at) => at), ranks: ranks(data.values, data.mode) };
  }, [data]);
  const draw = useMemo(() => (pen, width) => drawLines(pen, made, width, 320), [made]);
  const options = [6, 12, 24, 40].map((one) => [String(one), `${one}`]);
  if (!data.axes.length || !data.trials.length) return html`<${Empty}>No results with parameters that differ.<//>`;
  return html`<div class="bar small"><${Choose} label="parameters" value=${query.many ?? "12"} options=${options} onChange=${(many) => choose({ many: many === "12" ? null : many })} /> <span class="quiet">${CHOSEN[data.chosen_by]}</span></div>
    <${Picture} draw=${draw} data=${made} height=${320} label=${`parallel coordinates of ${data.axes.map((one) => brief(one.name, 60)).join(", ")}`} />
    <${Best} data=${data} experiment=${experiment} axes=${data.axes} at=${data.at} />`;
}

function Best({ data, experiment, axes, at }) {
  const rows = bestOf(data.values, data.mode).map((place) => [toTrial(experiment, data.trials[place]), number(data.values[place]), ...axes.map((axis, one) => html`<${Foreign} text=${worded(axis, at[one][place])} most=${60} />`)]);
  return html`<${Rows} title="the best trials" of=${data.trials.length} head=${["trial", data.metric, ...axes.map((axis) => axis.name)]} rows=${rows} />`;
}

export function Pareto({ data, experiment }) {
  const [pair, setPair] = useState([0, 1]);
  const many = data.objectives.length;
  const [x, y] = pair.every((one) => one < many) ? pair : [0, 1];
  const draw = useMemo(() => (pen, width, height) => many > 1 && cloud(pen, data, x, y, width, height), [data, x, y]);
  const names = data.objectives.map((one, at) => [String(at), brief(one.name, 40)]);
  const rows = data.trials.slice(0, Math.min(data.front, 200)).map((trial, at) => [toTrial(experiment, trial), ...data.points[at].map((one) => number(one))]);
  return html`<${Objectives} data=${data} />
    ${!data.trials.length ? html`<${Empty}>${many ? "No trial has a number for each of these." : "Choose two objectives or more."}<//>` : html`
      <p><b>${count(data.on_front)}</b> of ${several(data.results, "trial")} ${data.on_front === 1 ? "is" : "are"} beaten by no other.</p>
      ${many > 2 && html`<div class="bar small"><${Choose} label="x" value=${String(x)} options=${names} onChange=${(one) => setPair([Number(one), y])} /><${Choose} label="y" value=${String(y)} options=${names} onChange=${(one) => setPair([x, Number(one)])} /></div>`}
      <${Picture} draw=${draw} data=${data} height=${380} onPick=${(trial) => go(trialLink(experiment, trial))} label=${`${data.objectives[x].name} and ${data.objectives[y].name} of ${several(data.trials.length, "trial")}; the front is in the table below`} />
      <${Rows} title="the front" of=${data.on_front} head=${["trial", ...data.objectives.map((one) => `${one.name} ${one.mode === "minimize" ? "↓" : "↑"}`)]} rows=${rows} />`}`;
}

const WAYS = [["", "–"], ["maximize", "more is better"], ["minimize", "less is better"]];

function Objectives({ data }) {
  const chosen = new Map(data.objectives.map((one) => [one.name, one.mode]));
  const set = (name, mode) => {
    const next = new Map(chosen);
    if (mode) next.set(name, mode);
    else next.delete(name);
    const words = [...next].map(([one, way]) => `${one}:${way}`).slice(0, 6);
    setWanted(words);
    if (words.length !== 1) choose({ objectives: words.length ? JSON.stringify(words) : null });
  };
  // One objective alone is no front: it is kept here until there is a second one.
  const [wanted, setWanted] = useState(null);
  if (wanted?.length === 1) {
    const [name, way] = [wanted[0].slice(0, wanted[0].lastIndexOf(":")), wanted[0].slice(wanted[0].lastIndexOf(":") + 1)];
    chosen.clear();
    chosen.set(name, way);
  }
  return html`<fieldset class="objectives"><legend class="quiet">objectives</legend>${data.metrics.map((name) => html`<${Choose} key=${name} label=${brief(name, 40)} value=${chosen.get(name) ?? ""} options=${WAYS} onChange=${(mode) => set(name, mode)} />`)}</fieldset>`;
}

function cloud(pen, data, x, y, width, height) {
  const axis = (at) => resultAxis(data.objectives[at].name, data.points.map((one) => one[at]));
  const [across, up] = [axis(x), axis(y)];
  const { px, py } = frame(pen, { x: across, y: up, top: 22, width, height });
  const spots = data.trials.map((trial, at) => [px(share(across, data.points[at][x])), py(share(up, data.points[at][y])), trial]);
  pen.fillStyle = colour("dot");
  pen.globalAlpha = 0.5;
  spots.slice(data.front).forEach(([a, b]) => dot(pen, a, b, 2));
  pen.globalAlpha = 1;
  const front = spots.slice(0, data.front).sort((a, b) => a[0] - b[0]);
  pen.strokeStyle = pen.fillStyle = colour(LINES[1]);
  pen.setLineDash([4, 3]);
  pen.beginPath();
  if (data.objectives.length === 2) front.forEach(([a, b]) => pen.lineTo(a, b));
  pen.stroke();
  pen.setLineDash([]);
  front.forEach(([a, b]) => pen.fillRect(a - 3.5, b - 3.5, 7, 7));
  pen.fillStyle = colour("text");
  pen.textAlign = "left";
  pen.fillText(titled(up, 60), 4, 12);
  return [...spots.slice(data.front), ...front];
}

export function Hypervolume({ data, experiment }) {
  const draw = useMemo(() => (pen, width, height) => data.trials.length && grown(pen, data, width, height), [data]);
  const zero = data.objectives.map((one, at) => `${brief(one.name, 40)} ${number(data.reference[at])}`).join(", ");
  const rows = data.trials.map((trial, at) => [toTrial(experiment, trial), count(data.counts[at]), duration(data.elapsed_s[at]), number(data.volumes[at])]).reverse().slice(0, ROWS);
  return html`<${Objectives} data=${data} />
    ${!data.trials.length ? html`<${Empty}>${data.objectives.length > 1 ? "No trial is better than the reference in each of these." : "Choose two objectives or more."}<//>` : html`
      <p>The front reaches <b>${number(data.volumes.at(-1))}</b> above ${zero}, after ${several(data.results, "result")}.</p>
      <${Picture} draw=${draw} data=${data} height=${320} onPick=${(trial) => go(trialLink(experiment, trial))} label=${`the hypervolume over time, ${number(data.volumes.at(-1))} at last; the steps are in the table below`} />
      <${Rows} title="the steps" of=${data.trials.length} head=${["trial", "results", "after", "hypervolume"]} rows=${rows} />`}`;
}

function grown(pen, data, width, height) {
  const across = resultAxis("seconds since the start", [0, ...data.elapsed_s]);
  const up = resultAxis("hypervolume", [0, ...data.volumes]);
  const { px, py, right } = frame(pen, { x: across, y: up, top: 22, width, height });
  const spots = data.trials.map((trial, at) => [px(share(across, data.elapsed_s[at])), py(share(up, data.volumes[at])), trial]);
  pen.strokeStyle = pen.fillStyle = colour(LINES[1]);
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(px(0), py(0));
  spots.forEach(([x, y], at) => {
    pen.lineTo(x, at ? spots[at - 1][1] : py(0));
    pen.lineTo(x, y);
  });
  pen.lineTo(right, spots.at(-1)[1]);
  pen.stroke();
  pen.lineWidth = 1;
  spots.forEach(([x, y]) => dot(pen, x, y));
  pen.fillStyle = colour("text");
  pen.textAlign = "left";
  pen.fillText(up.name, 4, 12);
  return spots;
}
