/** One trial: what it changed, how it went, what it wrote. */
import { html, useEffect, useMemo, useState } from "../page/ui.js";
import { address, change as changeIt, get, of } from "../page/api.js";
import { link, trialLink } from "../page/route.js";
import { Given } from "../page/annotations.js";
import { Chart } from "../page/chart.js";
import { COMMANDS } from "../page/commands.js";
import { Submit } from "../page/controls.js";
import { write } from "../page/json.js";
import { Demo } from "../page/demo.js";
import { Log } from "../page/log.js";
import { Tensors } from "../page/tensors.js";
import { differences, flatten } from "../page/words.js";
import { Ask, Command, Empty, Foreign, Panel, Problem, State, stateOf, useNow } from "../page/widgets.js";
import { bytes, count, duration, number, several, signed, time, value as shownValue, whole } from "../page/format.js";

const MOST_CHILDREN = 60;

/** The detail of a trial, read again when the table says that it changed. */
export function useTrial(experiment, trial, stamp) {
  const [state, setState] = useState({});
  useEffect(() => {
    let ended = false;
    if (trial === null || trial === undefined) {
      setState({});
      return undefined;
    }
    get(of(experiment, `/trials/${trial}`)).then((told) => ended || setState({ told }), (error) => ended || setState({ error }));
    return () => {
      ended = true;
    };
  }, [experiment, trial, stamp]);
  return state.told && state.told.trial.id !== trial ? {} : state;
}

/** Changes whenever one of these of the trial's row does. */
export const stampOf = (table, row) =>
  row < 0 ? "" : ["state", "outcome", "attempts", "reports", "value", "latest", "pinned", "tags", "starred", "notes"].map((name) => table.get(name, row)).join();

export function Trial({ where, live, version, change }) {
  const { table } = live;
  const row = table.rowOf(where.trial);
  const { told, error } = useTrial(where.experiment, where.trial, stampOf(table, row));
  const parent = useTrial(where.experiment, told?.trial.parent, "");
  if (error) return html`<main id="main"><h1>Trial ${where.trial}</h1><${Problem} error=${error}><p><a href=${link(where.experiment, "trials")}>All trials</a></p><//></main>`;
  if (!told) return html`<main id="main"><h1>Trial ${where.trial}</h1><p class="quiet">Reading …</p></main>`;
  const { trial } = told;
  const mode = live.standing.experiment.mode;
  return html`<main id="main" class="trial">
    <${Head} trial=${trial} where=${where} table=${table} row=${row} mode=${mode} change=${change} live=${live} children=${told.children} />
    <${Line} table=${table} row=${row} trial=${trial} experiment=${where.experiment} />
    <div class="grid two">
      <${Life} told=${told} experiment=${where.experiment} />
      <${Changed} trial=${trial} parent=${parent.told?.trial} error=${parent.error} experiment=${where.experiment} />
      <${Given} experiment=${where.experiment} trial=${trial.id} tags=${trial.tags} starred=${trial.starred} notes=${told.notes} change=${change} onDone=${live.refresh.bind(live)} />
      <${Metrics} told=${told} parent=${parent.told} />
      <${Heirs} children=${told.children} table=${table} mode=${mode} experiment=${where.experiment} version=${version} />
      <${Tensors} experiment=${where.experiment} trial=${trial.id} committed=${trial.weights_digest} />
      ${trial.weights_digest && html`<${Demo} key=${trial.id} experiment=${where.experiment} trial=${trial.id} stamp=${`${trial.weights_digest}${trial.state}`} change=${change} />`}
      <${Panel} title="log" wide><${Log} experiment=${where.experiment} trial=${trial.id} attempt=${trial.attempt || undefined} running=${trial.state === "running"} key=${trial.attempt} />
        <p class="as-command"><${Command} text=${COMMANDS.log(where.experiment, trial.id, "stdout")} /></p><//>
      <${Files} experiment=${where.experiment} trial=${trial.id} stamp=${trial.state} attempt=${trial.attempt} />
      <${Everything} trial=${trial} />
    </div></main>`;
}

function Head({ trial, where, table, row, mode, change, live, children }) {
  const [open, setOpen] = useState("");
  const over = trial.state === "ended";
  const gain = row < 0 ? NaN : table.numbers("gain", mode)[row];
  const pinned = row >= 0 && Boolean(table.get("pinned", row));
  const close = () => {
    setOpen("");
    live.refresh();
  };
  const child = open === "child" || open === "clone";
  const before = trial.id > 0 ? trialLink(where.experiment, trial.id - 1) : null;
  return html`<div class="bar"><h1>Trial ${trial.id}</h1>
    <${State} word=${stateOf(trial.state, trial.outcome)} />
    ${trial.value !== null && html`<span class="big">${number(trial.value, 6)}</span>`}
    ${!Number.isNaN(gain) && html`<span class="quiet">${signed(gain)} over its parent</span>`}
    ${trial.by_hand && html`<span class="tag">by hand</span>`}${pinned && html`<span class="tag">pinned</span>`}
    <span class="grow"></span>
    ${change && html`<span class="buttons">
      ${trial.parameters !== null && html`<button type="button" onClick=${() => setOpen("child")} disabled=${!trial.save_path} title="a new trial that inherits this one's weights">child…</button>`}
      <button type="button" onClick=${() => setOpen("clone")} title="a new trial with the same parameters, changed or not">clone…</button>
      ${trial.weights_digest && html`<button type="button" onClick=${() => setOpen("pin")}>${pinned ? "unpin…" : "pin…"}</button>`}
      ${!over && html`<button type="button" onClick=${() => setOpen("kill")}>kill…</button>`}</span>`}
    <nav aria-label="neighbours">${before && html`<a href=${before} title="[">◂ ${trial.id - 1}</a>`} <a href=${trialLink(where.experiment, trial.id + 1)} title="]">${trial.id + 1} ▸</a></nav>
    <${Command} text=${COMMANDS.show(where.experiment, trial.id)} />
    ${open === "kill" && html`<${Ask} title=${`End trial ${trial.id}?`} word="kill" danger onClose=${close} command=${COMMANDS.killTrial(where.experiment, trial.id)}
      act=${async () => {
        const answer = await changeIt("POST", of(where.experiment, "/trials/kill"), { trials: [trial.id] });
        return `Trial ${trial.id} is ${Object.values(answer.trials)[0]}.`;
      }}><p>${children.length ? `${several(children.length, "child", "children")} asked for it as a parent. ` : ""}Its outcome will be “killed”; the tuner hears of it.</p><//>`}
    ${open === "pin" && html`<${Ask} title=${pinned ? "Let retention decide again?" : "Keep these weights whatever retention says?"} word=${pinned ? "unpin" : "pin"} onClose=${close}
      command=${pinned ? COMMANDS.unpin(where.experiment, trial.id) : COMMANDS.pin(where.experiment, trial.id)}
      act=${async () => ((await changeIt(pinned ? "DELETE" : "PUT", of(where.experiment, `/trials/${trial.id}/pin`))).pinned ? "They are kept." : "Retention decides.")}><//>`}
    ${child && html`<${Submit} experiment=${where.experiment} onClose=${close} start=${write(open === "child" ? heir(trial) : cloned(trial), 2)}
      title=${open === "child" ? `A child of trial ${trial.id}` : `A clone of trial ${trial.id}`}
      note=${open === "child" ? html`<p>It begins with the weights of trial ${trial.id}. With a <code>save_path</code> of its own it bequeaths, too.</p>` : null} words=${(given) => html`<${Words} found=${differences(trial.parameters, given)} />`} />`}
  </div>`;
}

/** Parameters of a child: the parent's, with the parent's weights to restore. */
export function heir(trial) {
  const { save_path: _save, ...parameters } = trial.parameters ?? {};
  return { ...parameters, restore_path: trial.save_path };
}

/** Parameters of a clone: the same, without the place where the first one saved. */
export function cloned(trial) {
  const { save_path: _save, ...parameters } = trial.parameters ?? {};
  return parameters;
}

function Line({ table, row, trial, experiment }) {
  const line = row < 0 ? [] : table.line(row).slice(0, -1);
  const shown = line.length > 8 ? [...line.slice(0, 2), -1, ...line.slice(-5)] : line;
  return html`<p class="line">${shown.map((one) => (one < 0 ? html`<span class="quiet">… ${line.length - 7} more … ▸ </span>`
    : html`<a href=${trialLink(experiment, table.number("trial", one))}>${table.number("trial", one)}</a> ▸ `))}<b>${trial.id}</b>
    <span class="quiet"> · generation ${row < 0 ? "–" : count(table.get("generation", row))}${trial.restore_path?.startsWith("/") ? " · begins with weights from outside" : ""}</span> · <a href=${link(experiment, "lineage", { family: trial.id })}>its family</a></p>`;
}

function Life({ told, experiment }) {
  const { trial, attempts } = told;
  const now = useNow(1);
  const rows = [
    ["asked for", trial.asked_at], ["proposed", trial.proposed_at], ["started", trial.started_at], ["ended", trial.ended_at],
  ];
  const waited = trial.proposed_at && trial.asked_at ? trial.proposed_at - trial.asked_at : null;
  const begin = trial.started_at;
  return html`<${Panel} title="life" side=${begin ? `${duration((trial.ended_at ?? now) - begin)} · ${duration(trial.cpu_s)} CPU` : ""}>
    <dl class="pairs">${rows.map(([word, at]) => html`<div><dt>${word}</dt><dd>${time(at)}${word === "proposed" && waited > 1 ? html` <span class="quiet">after ${duration(waited)}</span>` : ""}</dd></div>`)}
      ${trial.gate && html`<div><dt>gate</dt><dd>${trial.gate === "open" ? "open: children may inherit" : html`children cannot inherit: <${Foreign} text=${trial.gate} />`}</dd></div>`}
      ${trial.end_reason && html`<div><dt>ended because</dt><dd><${Foreign} text=${trial.end_reason} most=${2000} />${trial.exit_code !== null ? ` (exit code ${trial.exit_code})` : ""}${trial.signal !== null ? ` (signal ${trial.signal})` : ""}</dd></div>`}
      ${trial.weights_digest && html`<div><dt>weights</dt><dd>${bytes(trial.weights_bytes)} · <code><${Foreign} text=${trial.weights_digest.slice(0, 16)} title=${trial.weights_digest} />…</code></dd></div>`}</dl>
    ${trial.error && html`<pre class="error" tabindex="0" aria-label="error"><${Foreign} text=${trial.error} most=${20000} /></pre>`}
    ${trial.tuner_error && html`<p class="warn">In the tuner:</p><pre class="error" tabindex="0" aria-label="error in the tuner"><${Foreign} text=${trial.tuner_error} most=${20000} /></pre>`}
    ${attempts.length > 0 && html`<h3>attempts</h3><div class="scroll" tabindex="0" role="region" aria-label="attempts"><table class="list small"><thead><tr><th scope="col">#</th><th scope="col">worker</th><th scope="col">started</th><th scope="col">took</th><th scope="col">end</th></tr></thead>
      <tbody>${attempts.map((one) => html`<tr key=${one.number}><th scope="row">${one.number}</th><td>${one.worker ? html`<a href=${link(experiment, "hosts")}><${Foreign} text=${one.worker} /></a>` : "–"}</td><td>${time(one.started_at)}</td>
        <td>${duration((one.ended_at ?? (one.end_reason ? null : now)) - one.started_at)}</td><td>${one.end_reason ? html`<${Foreign} text=${one.end_reason} />` : html`<${State} word="running" />`}${one.text ? html`: <${Foreign} text=${one.text} most=${300} />` : ""}</td></tr>`)}</tbody></table></div>`}<//>`;
}

const Words = ({ found }) => (found.length === 0 ? html`<p class="quiet">Nothing differs.</p>`
  : html`<ul class="words">${found.slice(0, 200).map((one) => html`<li class=${one.kind}><${Foreign} text=${one.words} most=${300} /></li>`)}${found.length > 200 ? html`<li class="quiet">and ${count(found.length - 200)} more</li>` : ""}</ul>`);

const PATHS = new Set(["save_path", "restore_path"]);

function Changed({ trial, parent, error, experiment }) {
  const [asked, setAsked] = useState("");
  const found = useMemo(() => (parent ? differences(parent.parameters, trial.parameters).filter((one) => !PATHS.has(one.name)) : []), [parent, trial.parameters]);
  const flat = useMemo(() => Object.entries(flatten(trial.parameters ?? {})), [trial.parameters]);
  const differs = new Set(found.map((one) => one.name));
  const shown = flat.filter(([name]) => name.toLowerCase().includes(asked.toLowerCase()));
  return html`<${Panel} title=${trial.parent === null ? "parameters" : `changed against ${trial.parent}`} side=${several(flat.length, "parameter")}>
    ${trial.parent !== null && (parent ? html`<${Words} found=${found} />` : error ? html`<${Problem} error=${error} />` : html`<p class="quiet">Reading trial <a href=${trialLink(experiment, trial.parent)}>${trial.parent}</a> …</p>`)}
    ${flat.length > 20 && html`<input type="search" aria-label="search parameters" placeholder="search parameters" value=${asked} onInput=${(event) => setAsked(event.target.value)} />`}
    <div class="scroll tall" tabindex="0" role="region" aria-label="parameters"><table class="list small"><tbody>${shown.slice(0, 300).map(([name, one]) => html`<tr key=${name} class=${differs.has(name) ? "differs" : ""}>
      <th scope="row"><${Foreign} text=${name} most=${120} /></th><td><bdi title=${whole(one)}>${shownValue(one, 200)}</bdi></td></tr>`)}</tbody></table></div>
    ${shown.length > 300 && html`<p class="quiet">The first 300 of ${count(shown.length)}: search for others.</p>`}
    <details><summary>as JSON</summary><pre tabindex="0" aria-label="parameters as JSON"><${Foreign} text=${write(trial.parameters, 2)} most=${100000} /></pre></details><//>`;
}

function Metrics({ told, parent }) {
  const curve = (of_) => of_.metrics.filter((one) => one.counted && !one.final && one.number !== null);
  const { data, series, missing } = useMemo(() => {
    const own = curve(told);
    const theirs = parent ? curve(parent) : [];
    const most = Math.max(own.length, theirs.length);
    const steps = Array.from({ length: most }, (_, at) => at + 1);
    const padded = (points) => steps.map((_, at) => points[at]?.number ?? null);
    const all = [{ label: `trial ${told.trial.id}`, stroke: "line-1", width: 2, points: { show: own.length < 40 } }];
    const lines = [steps, padded(own)];
    if (theirs.length) {
      all.push({ label: `parent ${parent.trial.id}`, stroke: "line-2", dash: [6, 4], width: 1.5, points: { show: false } });
      lines.push(padded(theirs));
    }
    return { data: lines, series: all, missing: told.metrics.filter((one) => one.counted && one.number === null).length };
  }, [told, parent]);
  const final = told.metrics.find((one) => one.final && one.counted);
  return html`<${Panel} title="metrics" side=${final ? html`final <b title=${whole(final.value)}>${shownValue(final.value, 60)}</b>` : ""}>
    ${data[0].length === 0 ? html`<${Empty}>No intermediate metrics.<//>` : html`<${Chart} data=${data} series=${series} x="report" whole height=${220} label=${`curve of trial ${told.trial.id}, ${several(data[0].length, "report")}`} />`}
    ${missing > 0 && html`<p class="quiet">${several(missing, "report")} ${missing === 1 ? "has" : "have"} no number (NaN, or a value without one) and ${missing === 1 ? "is" : "are"} not drawn.</p>`}<//>`;
}

function Heirs({ children, table, mode, experiment, version }) {
  const rows = useMemo(() => {
    const found = children.map((trial) => table.rowOf(trial)).filter((row) => row >= 0);
    return [...table.order("value", mode !== "minimize", found)];
  }, [children, table, version]);
  const gain = table.numbers("gain", mode);
  return html`<${Panel} title=${several(children.length, "child", "children")} side=${children.length ? html`<a href=${link(experiment, "trials", { where: `parent=${table.get("parent", rows[0]) ?? ""}` })}>as a table</a>` : ""}>
    ${children.length === 0 ? html`<${Empty}>None has inherited from it.<//>` : html`<div class="scroll tall" tabindex="0" role="region" aria-label="children"><table class="list small"><thead><tr><th scope="col">trial</th><th scope="col">state</th><th scope="col" class="right">value</th><th scope="col" class="right">gain</th></tr></thead>
      <tbody>${rows.slice(0, MOST_CHILDREN).map((row) => html`<tr key=${row}><th scope="row"><a href=${trialLink(experiment, table.number("trial", row))}>${table.number("trial", row)}</a></th><td><${State} word=${stateOf(table.get("state", row), table.get("outcome", row))} /></td><td class="right">${number(table.get("value", row))}</td><td class="right">${signed(gain[row])}</td></tr>`)}</tbody></table></div>
      ${rows.length > MOST_CHILDREN && html`<p class="quiet">The best ${MOST_CHILDREN} of ${count(rows.length)}.</p>`}`}<//>`;
}

function Files({ experiment, trial, stamp, attempt }) {
  const [state, setState] = useState({});
  useEffect(() => {
    let ended = false;
    get(of(experiment, `/trials/${trial}/files`)).then((told) => ended || setState({ told }), (error) => ended || setState({ error }));
    return () => {
      ended = true;
    };
  }, [experiment, trial, stamp, attempt]);
  const { told, error } = state;
  const href = (path) => address(of(experiment, `/trials/${trial}/files/${path.split("/").map(encodeURIComponent).join("/")}?attempt=${told.attempt}`));
  return html`<${Panel} title="files" side=${told ? html`attempt ${told.attempt}, at <${Foreign} text=${told.place} most=${60} />` : ""}>
    <${Problem} error=${error} />
    ${told && (told.files.length === 0 ? html`<${Empty}>It has left none.<//>` : html`<div class="scroll tall" tabindex="0" role="region" aria-label="files"><table class="list small"><tbody>${told.files.slice(0, 500).map((file) => html`<tr key=${file.path}><th scope="row"><a href=${href(file.path)} download><${Foreign} text=${file.path} most=${160} /></a></th><td>${file.kind}</td><td class="right">${bytes(file.size)}</td><td>${time(file.changed_at)}</td></tr>`)}</tbody></table></div>`)}
    ${told?.cut && html`<p class="quiet">There are more than are listed.</p>`}<//>`;
}

const Everything = ({ trial }) => html`<${Panel} title="all that is known">
  <details><summary>as JSON</summary><pre tabindex="0" aria-label="all that is known, as JSON"><${Foreign} text=${write(trial, 2)} most=${100000} /></pre></details><//>`;
