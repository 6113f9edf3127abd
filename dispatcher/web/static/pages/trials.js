/** The table of all trials: sorted, filtered, columns chosen, rows marked for comparing. */
import { html, useEffect, useMemo, useRef, useState } from "../page/ui.js";
import { get, of } from "../page/api.js";
import { link, readTrials, trialLink } from "../page/route.js";
import { choose, go } from "../page/navigation.js";
import { Annotate, Marks } from "../page/annotations.js";
import { condition } from "../page/where.js";
import { COMMANDS } from "../page/commands.js";
import { telling } from "../page/progress.js";
import { Spark } from "../page/sparks.js";
import { Virtual } from "../page/virtual.js";
import { brief } from "../page/safe.js";
import { Command, Foreign, Problem, State, stateOf, useNow } from "../page/widgets.js";
import { count, duration, number, several, signed, time, value as shownValue, whole } from "../page/format.js";

const HEIGHT = 29;
const OWN = ["curve", "value", "gain", "state", "parent", "generation", "took", "attempts", "worker", "latest", "reports", "created", "started", "ended", "pinned", "tags", "starred", "notes"];
const FIRST = ["value", "gain", "state", "parent", "generation", "took"];
const MOST_PARAMETERS = 6;
const WIDTHS = { curve: 104, trial: 78, value: 96, gain: 88, state: 128, parent: 70, generation: 58, took: 92, attempts: 74, worker: 130, latest: 90, reports: 72, created: 130, started: 130, ended: 130, pinned: 64, tags: 160, starred: 64, notes: 58 };
const COUNTS = ["generation", "attempts", "reports"];
const PLAIN = new Set(["curve", "gain", "state", "parent", "took", "pinned", "starred", "tags"]); // no more than they show
const TITLES = { generation: "gen", took: "took" };

export function Trials({ where, live, version, change }) {
  const { table } = live;
  const { query } = where;
  const mode = live.standing.experiment.mode;
  const sort = (query.sort ?? (mode === "minimize" ? "value" : "-value"));
  const descending = sort.startsWith("-");
  const by = sort.replace(/^-/, "");
  const columns = useMemo(() => chosen(query.columns, table), [query.columns, table]);
  const filter = useFilter(where.experiment, query.where ?? "", table, version);
  const marked = readTrials(query.marked, 8);
  const { order, fresh, again } = useOrder(table, version, by, descending, filter.rows, mode);
  const [at, setAt] = useState(-1);
  useEffect(() => setAt(-1), [by, descending, query.where]);

  const mark = (trial) => choose({ marked: (marked.includes(trial) ? marked.filter((one) => one !== trial) : [...marked, trial].slice(-8)).join(",") });
  const starred = query.where === "starred=true";
  const compare = () => marked.length > 1 && go(link(where.experiment, "compare", { trials: marked.join(",") }));
  const key = (event) => {
    if (event.target.closest("input, select")) return;
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -order.length, End: order.length }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) setAt(Math.min(order.length - 1, Math.max(0, at + step)));
    else if (event.key === "Enter" && at >= 0) go(trialLink(where.experiment, table.number("trial", order[at])));
    else if ((event.key === "x" || event.key === " ") && at >= 0) mark(table.number("trial", order[at]));
    else if (event.key === "c") compare();
    else return;
    event.preventDefault();
  };
  const widths = [34, WIDTHS.trial, ...columns.map((name) => WIDTHS[name] ?? 116)];
  // With a width of its own no row has to be measured by what is in it.
  const template = { gridTemplateColumns: widths.map((one) => `${one}px`).join(" "), width: `${widths.reduce((sum, one) => sum + one)}px` };
  const resort = (name) => choose({ sort: by === name ? `${descending ? "" : "-"}${name}` : `${table.columns.get(name)?.numeric || name === "gain" ? "-" : ""}${name}` });
  const head = html`<div class="vhead" role="rowgroup"><div class="vrow" role="row" aria-rowindex="1" style=${template}>
    <span role="columnheader" class="box"><span class="hidden">marked</span></span>
    ${["trial", ...columns].map((name) => html`<span role="columnheader" key=${name} class=${rightly(table, name) ? "right" : ""} aria-sort=${by === name ? (descending ? "descending" : "ascending") : "none"}>
      ${name === "curve" ? html`<b>curve</b>` : html`<button type="button" class="plain" title=${`sort by ${brief(name, 200)}`} tabindex="-1" onClick=${() => resort(name)}><bdi>${brief(TITLES[name] ?? name, 60)}</bdi>${by === name ? (descending ? " ▼" : " ▲") : ""}</button>`}</span>`)}
  </div></div>`;
  const sides = columns.map((name) => (rightly(table, name) ? "right" : ""));
  // Plain calls and no keys: a row that scrolls in takes the elements of one that scrolls out.
  const row = (index, brisk) => rowOf({
    brisk, index, row: order[index], table, columns, sides, template, mode, experiment: where.experiment, at: index === at,
    marked: marked.includes(table.number("trial", order[index])), onMark: mark,
  });
  return html`<main id="main" class="trials">
    <div class="bar"><h1>Trials</h1>
      <${Filter} given=${query.where ?? ""} problem=${filter.error} />
      <span class="quiet" role="status">${filter.rows ? `${count(order.length)} of ${several(table.count, "trial")}` : several(table.count, "trial")}</span>
      <${Columns} table=${table} columns=${columns} />
      <button type="button" onClick=${() => download(table, order, columns, where.experiment, mode)}>csv</button>
      <button type="button" onClick=${compare} disabled=${marked.length < 2} title="c">compare ${marked.length || ""}</button>
      ${marked.length > 0 && html`<button type="button" class="plain" onClick=${() => choose({ marked: null })}>unmark</button>`}
      ${change && marked.length > 0 && html`<${Annotate} experiment=${where.experiment} trials=${marked} starred=${marked.every((one) => table.get("starred", table.rowOf(one)))} />`}
      <button type="button" class="plain" aria-pressed=${starred} title="only trials with a star" onClick=${() => choose({ where: starred ? null : "starred=true" })}>${starred ? "★" : "☆"} starred</button>
      ${fresh > 0 && html`<button type="button" class="main" onClick=${again}>${count(fresh)} changed · sort again</button>`}
    </div>
    <${Problem} error=${filter.error} />
    ${table.count === 0 ? html`<p class="quiet empty">There are no trials yet.</p>` : html`
      <${Virtual} count=${order.length} height=${HEIGHT} row=${row} head=${head} label="trials" onKey=${key} at=${at} columns=${columns.length + 2} className="trials-table" />`}
    <p class="as-command"><span class="quiet">the same as</span> <${Command} text=${COMMANDS.list(where.experiment, query.where)} /></p>
  </main>`;
}

/** Columns by the query, else the usual ones and the parameters that tell trials apart. */
export function chosen(words, table) {
  const asked = (words ?? "").split(",").filter(Boolean).map((one) => one.replace(/%2C/g, ","));
  const known = asked.filter((name) => OWN.includes(name) || table.columns.has(name));
  if (known.length) return known;
  const found = telling(table, MOST_PARAMETERS);
  const given = ["starred", "tags"].filter((name) => table.tally(name).size > (name === "starred" ? 1 : 0));
  const curves = table.tally("reports").size > 1 ? ["curve"] : [];
  return [...FIRST, ...curves, ...given, ...(found.length ? found : table.names("parameter").slice(0, MOST_PARAMETERS))];
}

/** Rows of a condition: found here where the columns know enough, else asked of the server. */
function useFilter(experiment, text, table, version) {
  const read = useMemo(() => {
    if (!text.trim()) return { rows: null };
    try {
      return condition(text, table);
    } catch (error) {
      return { error };
    }
  }, [text, table, version]);
  const here = useMemo(() => {
    if (!read.test || !read.local) return null;
    const rows = [];
    for (let row = 0; row < table.count; row += 1) if (read.test(row)) rows.push(row);
    return rows;
  }, [read]);
  const [there, setThere] = useState({});
  const away = Boolean(read.test) && !read.local;
  const slow = away ? Math.floor(version / 50) : 0; // not at each change
  useEffect(() => {
    if (!away) return undefined;
    let ended = false;
    const timer = setTimeout(() => get(of(experiment, `/trials?where=${encodeURIComponent(text)}`)).then(
      (told) => ended || setThere({ text, trials: told.trials.map((one) => one.id) }),
      (error) => ended || setThere({ text, error, trials: [] }),
    ), 300);
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [text, away, slow]);
  if (read.error) return { rows: null, error: { message: read.error.message, where: `character ${read.error.column}`, hint: read.error.hint } };
  if (!away) return { rows: here };
  if (there.text !== text) return { rows: [] };
  return { rows: there.trials.map((trial) => table.rowOf(trial)).filter((row) => row >= 0), error: there.error };
}

/** The order holds while rows change; how many changed since is told, and sorted by a click. */
function useOrder(table, version, by, descending, rows, mode) {
  const [stamp, setStamp] = useState(0);
  const held = useRef({ key: null });
  const key = JSON.stringify([by, descending, rows === null, stamp, mode]);
  const wanted = rows;
  const small = table.count <= 200;
  if (held.current.table !== table || held.current.key !== key || (wanted && held.current.count !== wanted.length) || (small && held.current.version !== version) || held.current.order.length === 0) {
    held.current = { table, key, version, count: wanted?.length, order: table.order(by, descending, wanted, mode) };
  }
  return { order: held.current.order, fresh: version - held.current.version, again: () => setStamp((now) => now + 1) };
}

function Filter({ given, problem }) {
  const [text, setText] = useState(given);
  const timer = useRef(0);
  useEffect(() => setText(given), [given]);
  const typed = (event) => {
    setText(event.target.value);
    clearTimeout(timer.current);
    const { value } = event.target;
    timer.current = setTimeout(() => choose({ where: value || null }), 250);
  };
  return html`<input type="search" class="grow" data-filter aria-label="condition" aria-invalid=${Boolean(problem)} spellcheck=${false} value=${text} onInput=${typed}
    placeholder="lr<0.01 and optimizer=adam and outcome!=failed" maxlength="2000" />`;
}

/** @param brisk somebody scrolls by whole screens: without what is only seen by those who stay */
function rowOf({ brisk, index, row, table, columns, sides, template, mode, experiment, at, marked, onMark }) {
  const trial = table.number("trial", row);
  return html`<div class=${`vrow${at ? " at" : ""}${marked ? " marked" : ""}`} role="row" aria-rowindex=${index + 2} aria-selected=${at} style=${template}>
    <span role="gridcell" class="box"><input type="checkbox" tabindex="-1" aria-label=${`mark trial ${trial}`} checked=${marked} onChange=${() => onMark(trial)} /></span>
    <span role="rowheader" class="right"><a tabindex="-1" href=${trialLink(experiment, trial)}>${trial}</a></span>
    ${columns.map((name, place) => html`<span role="gridcell" class=${sides[place]} title=${brisk ? undefined : titleOf(name, row, table)}>${cellOf(name, row, table, mode, experiment, brisk)}</span>`)}
  </div>`;
}

const rightly = (table, name) => name === "gain" || name === "took" || Boolean(table.columns.get(name)?.numeric && table.columns.get(name).kind !== "time");

/** The whole of what a cell shows in short. */
function titleOf(name, row, table) {
  const value = PLAIN.has(name) ? null : table.get(name, row);
  return value === null || table.columns.get(name).kind === "time" ? undefined : whole(value, 600);
}

function cellOf(name, row, table, mode, experiment, brisk) {
  const running = table.get("state", row) === "running";
  if (name === "state") return State({ word: stateOf(table.get("state", row), table.get("outcome", row)) });
  if (name === "curve") return brisk ? "" : html`<${Spark} experiment=${experiment} trial=${table.number("trial", row)} reports=${table.number("reports", row)} />`;
  if (name === "gain") return signed(table.numbers("gain", mode)[row]).replace("–", "");
  if (name === "took") return running ? html`<${Running} since=${table.get("started", row)} />` : duration(table.numbers("took")[row]).replace("–", "");
  const value = table.get(name, row);
  if (value === null) return name === "value" && running ? html`<span class="quiet" title="newest of its metrics">${number(table.get("latest", row))}…</span>` : "";
  if (name === "parent") return html`<a tabindex="-1" href=${trialLink(experiment, value)}>${value}</a>`;
  if (name === "pinned") return value ? "pinned" : "";
  if (name === "starred") return value ? html`<span role="img" aria-label="starred">★</span>` : "";
  if (name === "tags") return html`<${Marks} tags=${value.split(" ")} />`;
  const column = table.columns.get(name);
  if (column.kind === "time") return time(value);
  if (column.numeric) return COUNTS.includes(name) ? count(value) : number(value);
  return html`<bdi>${shownValue(value, 60)}</bdi>`;
}

const Running = ({ since }) => html`${duration(useNow(1) - since)} …`;

function Columns({ table, columns }) {
  const [asked, setAsked] = useState("");
  const all = useMemo(() => [...OWN, ...table.names("parameter"), ...table.names("objective")], [table]);
  const found = all.filter((name) => name.toLowerCase().includes(asked.toLowerCase()));
  const toggle = (name) => {
    const next = columns.includes(name) ? columns.filter((one) => one !== name) : [...columns, name];
    choose({ columns: next.map((one) => one.replace(/,/g, "%2C")).join(",") });
  };
  return html`<details class="menu"><summary>columns</summary><div>
    <input type="search" aria-label="search columns" placeholder=${`${all.length} columns`} value=${asked} onInput=${(event) => setAsked(event.target.value)} />
    <ul>${found.slice(0, 200).map((name) => html`<li key=${name}><label><input type="checkbox" checked=${columns.includes(name)} onChange=${() => toggle(name)} /> <${Foreign} text=${name} most=${80} /></label></li>`)}</ul>
    ${found.length > 200 && html`<p class="quiet">and ${count(found.length - 200)} more: search</p>`}
    ${table.leftOut > 0 && html`<p class="quiet">${count(table.leftOut)} more parameters are not in the table; conditions may name them.</p>`}
    <button type="button" onClick=${() => choose({ columns: null })}>the usual ones</button></div></details>`;
}

/** One cell of CSV; a text that a spreadsheet would take for a formula gets a quote before it. */
export function csvCell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function download(table, order, columns, experiment, mode) {
  const names = ["trial", ...columns.filter((name) => name !== "curve")];
  const lines = [names.map(csvCell).join(",")];
  for (const row of order) {
    lines.push(names.map((name) => {
      if (name === "gain" || name === "took") {
        const made = table.numbers(name, mode)[row];
        return Number.isNaN(made) ? "" : made;
      }
      return csvCell(name === "state" ? stateOf(table.get("state", row), table.get("outcome", row)) : table.get(name, row));
    }).join(","));
  }
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
  anchor.download = `${experiment}.csv`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}
