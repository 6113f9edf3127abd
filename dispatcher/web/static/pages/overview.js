/** An experiment at a glance. */
import { html, useEffect, useMemo, useState } from "../page/ui.js";
import { get, of } from "../page/api.js";
import { link, trialLink } from "../page/route.js";
import { choose, go } from "../page/navigation.js";
import { Given } from "../page/annotations.js";
import { Chart } from "../page/chart.js";
import { Parallel } from "../page/parallel.js";
import { usePlot } from "../page/plotted.js";
import { Trackers } from "../page/trackers.js";
import { joined } from "../page/curves.js";
import { gains, progress, range } from "../page/progress.js";
import { Choose, Empty, Foreign, Panel, State, stateOf, useCalm } from "../page/widgets.js";
import { Controls } from "../page/controls.js";
import { count, duration, number, roughly, several, signed, time } from "../page/format.js";

export function Overview({ where, live, version, change }) {
  const { table } = live;
  const { experiment: summary, head } = live.standing;
  const mode = summary.mode;
  const many = table.count > 2000;
  const soon = useCalm(version, many ? 0.7 : 0.1);
  const later = useCalm(version, many ? 3 : 0.3);
  return html`<main id="main" class="overview">
    <${Top} summary=${summary} head=${head} experiment=${where.experiment} change=${change} live=${live} />
    <div class="grid">
      <${Best} table=${table} mode=${mode} experiment=${where.experiment} version=${soon} />
      <${Now} summary=${summary} head=${head} experiment=${where.experiment} past=${Boolean(table.whole)} />
      <${States} summary=${summary} experiment=${where.experiment} />
      <${Given} experiment=${summary.id} tags=${summary.tags} starred=${summary.starred} notes=${summary.notes} change=${change} onDone=${live.refresh.bind(live)} />
      <${Progress} table=${table} mode=${mode} version=${soon} where=${where} />
      <${Parallel} table=${table} mode=${mode} version=${later} />
      <${Curves} table=${table} mode=${mode} version=${later} experiment=${where.experiment} />
      <${Gains} table=${table} mode=${mode} version=${later} />
      <${Recent} table=${table} mode=${mode} experiment=${where.experiment} version=${version} />
      ${!table.whole && html`<${Trackers} sinks=${live.standing.sinks} />`}
    </div></main>`;
}

function Top({ summary, head, experiment, change, live }) {
  const ran = head ? head.active_s : summary.last_event_at && summary.created_at ? summary.last_event_at - summary.created_at : null;
  const busy = (head?.workers ?? []).reduce((sum, one) => sum + one.busy, 0);
  const slots = head?.slots ?? summary.slots;
  const ended = head?.ended ?? summary.ended;
  const limit = head?.max_trials ?? summary.max_trials;
  return html`<div class="bar"><h1 class="hidden">Overview</h1>
    <span class="figures">${[
      ran !== null && html`<span title="time that a head led it">${duration(ran)}</span>`,
      html`<span><b>${count(ended)}</b>${limit ? ` of ${count(limit)}` : ""} over</span>`,
      head && html`<span>${count(busy)} of ${several(slots, "slot")} busy</span>`,
      summary.rate ? html`<span>${number(summary.rate * 60, 3)}/min</span>` : null,
      summary.time_left_s !== null && html`<span>about <b>${roughly(summary.time_left_s)}</b> left</span>`,
      html`<span class="quiet">CPU ${duration(summary.cpu_s)}</span>`,
    ].filter(Boolean).map((one, place) => html`${place ? html`<span class="quiet" aria-hidden="true"> · </span>` : ""}${one}`)}</span>
    ${limit ? html`<progress max=${limit} value=${Math.min(ended, limit)} aria-label="trials that are over"></progress>` : null}
    ${change && html`<${Controls} experiment=${experiment} summary=${summary} head=${head} live=${live} />`}</div>`;
}

function Best({ table, mode, experiment, version }) {
  const found = useMemo(() => {
    const row = table.best(mode);
    if (row < 0) return null;
    const line = table.line(row);
    const cost = (rows) => rows.reduce((sum, one) => sum + (table.numbers("took")[one] || 0), 0);
    const all = Array.from({ length: table.count }, (_, one) => one);
    return { row, line, cost: cost(line), sum: cost(all), gain: table.numbers("gain", mode)[row] };
  }, [table, version, mode]);
  if (!found) return html`<${Panel} title="best"><${Empty}>No trial has a result yet.<//><//>`;
  const trial = (row) => table.number("trial", row);
  const shown = found.line.length > 9 ? [...found.line.slice(0, 2), -1, ...found.line.slice(-6)] : found.line;
  return html`<${Panel} title="best" side=${mode === "minimize" ? "↓ less is better" : "↑ more is better"}>
    <p class="big"><span data-best>${number(table.get("value", found.row), 6)}</span> <a href=${trialLink(experiment, trial(found.row))}>trial ${trial(found.row)}</a>
      ${!Number.isNaN(found.gain) && html`<span class="quiet"> ${signed(found.gain)} over its parent</span>`}</p>
    <p class="line">${shown.map((row, place) => html`${place ? html`<span aria-hidden="true"> ▸ </span>` : ""}${row < 0 ? html`<span class="quiet">… ${found.line.length - 8} more …</span>` : html`<a href=${trialLink(experiment, trial(row))}>${trial(row)}</a>`}`)}</p>
    <p class="quiet">This line of ${several(found.line.length, "trial")} cost ${duration(found.cost)}; the whole search ${duration(found.sum)}.</p><//>`;
}

function Now({ summary, head, experiment, past }) {
  const states = head?.counts ?? summary.states;
  const at = (name) => states[name] ?? 0;
  const rows = [
    ["running", at("running"), "trials", { where: "state=running" }], ["queued", at("queued"), "trials", { where: "state=queued" }],
    ["wait for parents", at("blocked") + at("held"), "waits"], ["in the tuner", at("open"), "waits"],
    ["try again soon", at("backoff"), "trials", { where: "state=backoff" }], ["being delivered", at("delivering"), "trials", { where: "state=delivering" }],
    ["parked", at("parked"), "waits"],
  ];
  return html`<${Panel} title=${past ? "then" : "now"}>
    <ul class="now">${rows.map(([word, many, page, query]) => html`<li class=${many ? "" : "quiet"}><a href=${link(experiment, page, query ?? {})}><b>${count(many)}</b> ${word}</a></li>`)}</ul>
    ${past ? html`<p class="quiet">Rows keep when a trial was asked for, proposed, started and over; a wait in the tuner counts as in the tuner.</p>` : !head && html`<p class="quiet">As the store has it; no head answers.</p>`}<//>`;
}

function States({ summary, experiment }) {
  const rows = Object.entries(summary.outcomes).sort((a, b) => b[1] - a[1]);
  const most = Math.max(1, ...rows.map(([, many]) => many));
  return html`<${Panel} title="how trials ended">
    ${rows.length === 0 ? html`<${Empty}>None has ended yet.<//>` : html`<ul class="bars">${rows.map(([word, many]) => html`<li>
      <a href=${link(experiment, "trials", { where: `outcome='${word}'` })}><${State} word=${word} /></a>
      <span class=${`track fill-${word.replace(/\W+/g, "-")}`}><span style=${{ width: `${Math.max(0.5, (100 * many) / most)}%` }}></span></span>
      <span class="right">${count(many)}</span></li>`)}</ul>`}<//>`;
}

function Progress({ table, mode, version, where }) {
  const x = where.query.x === "order" ? "order" : "time";
  const { data, rows } = useMemo(() => progress(table, mode, x), [table, version, mode, x]);
  const span = useMemo(() => range(data[1], data[2].at(-1), mode), [data]);
  useEffect(() => {
    if (rows.length) performance.mark("first-chart");
  }, [rows.length > 0]);
  const series = useMemo(() => [
    { label: "result", stroke: "dot", paths: () => null, points: { show: true, size: data[0].length > 3000 ? 2.5 : 4, fill: "dot" } },
    { label: "best so far", stroke: "line-1", width: 2.5, points: { show: false } },
  ], [data[0].length > 3000]);
  const last = data[2].at(-1);
  return html`<${Panel} title="every result, best so far" wide id="progress" side=${html`<${Choose} label="x" value=${x} options=${["time", "order"]} onChange=${(word) => choose({ x: word === "time" ? null : word })} />`}>
    ${rows.length === 0 ? html`<${Empty}>No trial has a result yet.<//>` : html`<${Chart} data=${data} series=${series} time=${x === "time"} x=${x === "time" ? "ended" : "place"} height=${240} span=${span}
      label=${`${count(rows.length)} results; the best so far is ${number(last)}`} onPick=${(at) => go(trialLink(where.experiment, table.number("trial", rows[at])))} />`}<//>`;
}

const CURVES = 8;

/** Seconds between two questions for the curves of most. */
const BANDS_S = 15;

function Curves({ table, mode, version, experiment }) {
  const [told, setTold] = useState(null);
  const { data: bands } = usePlot(of(experiment, "/curves/bands"), useCalm(version, BANDS_S));
  const wanted = useMemo(() => {
    const order = table.order("value", mode !== "minimize");
    return [...order].filter((row) => table.number("reports", row) > 1 && !Number.isNaN(table.number("value", row)))
      .slice(0, CURVES).map((row) => table.number("trial", row)).join(",");
  }, [table, version, mode]);
  useEffect(() => {
    let ended = false;
    if (wanted) {
      get(of(experiment, `/curves?trials=${wanted}&points=200`)).then((answer) => ended || setTold(answer), () => {});
    }
    return () => {
      ended = true;
    };
  }, [wanted]);
  const drawn = useMemo(() => told && joined(told.curves, bands), [told, bands]);
  const many = told?.curves.length ?? 0;
  return html`<${Panel} title=${`curves of the best ${many || ""}`.trim()} side=${bands?.steps.length ? `and between what 80 % of ${several(bands.used, "trial")} lie` : ""}>
    ${!wanted ? html`<${Empty}>No trial has reported intermediate metrics.<//>` : drawn && html`<${Chart} data=${drawn.data} series=${drawn.series} bands=${drawn.bands} x="report" whole height=${220} label=${`curves of trials ${wanted}${bands?.steps.length ? `; in the end the median of ${several(bands.used, "trial")} is ${number(bands.middle.at(-1))}, and 80 % lie between ${number(bands.low.at(-1))} and ${number(bands.high.at(-1))}` : ""}`} />`}<//>`;
}

function Gains({ table, mode, version }) {
  const rows = useMemo(() => gains(table, mode), [table, version, mode]);
  const most = Math.max(...rows.map((one) => Math.abs(one.gain)), 1e-12);
  return html`<${Panel} title="what made children better" side="median over the parent">
    ${rows.length === 0 ? html`<${Empty}>No children with results that differ from their parents.<//>` : html`<ul class="gains">${rows.map((one) => html`<li>
      <span><${Foreign} text=${one.name} most=${40} /> <${Foreign} text=${one.direction} most=${40} /></span>
      <span class="both"><span class=${one.gain < 0 ? "worse" : "better"} style=${{ width: `${(50 * Math.abs(one.gain)) / most}%` }}></span></span>
      <span class="right">${signed(one.gain)} <span class="quiet">(${count(one.count)})</span></span></li>`)}</ul>`}<//>`;
}

function Recent({ table, mode, experiment, version }) {
  const rows = useMemo(() => {
    const order = table.order("ended", true);
    return [...order.subarray(0, 8)].filter((row) => !Number.isNaN(table.number("ended", row)));
  }, [table, version]);
  const gain = table.numbers("gain", mode);
  return html`<${Panel} title="recent">
    ${rows.length === 0 ? html`<${Empty}>No trial has ended yet.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="recent trials"><table class="list small"><tbody>${rows.map((row) => html`<tr key=${row}>
      <td>${time(table.get("ended", row))}</td><th scope="row"><a href=${trialLink(experiment, table.number("trial", row))}>${table.number("trial", row)}</a></th>
      <td><${State} word=${stateOf(table.get("state", row), table.get("outcome", row))} /></td><td class="right">${number(table.get("value", row))}</td>
      <td class="right quiet">${Number.isNaN(gain[row]) ? "" : signed(gain[row])}</td></tr>`)}</tbody></table></div>`}<//>`;
}
