/** A request to a trial's trained model, and its answer. Its code runs at the server, when asked. */
import { html, useEffect, useRef, useState } from "./ui.js";
import { change as changeIt, get, of } from "./api.js";
import { COMMANDS } from "./commands.js";
import { Drawing } from "./drawing.js";
import { write } from "./json.js";
import { Command, Empty, Foreign, Panel, Problem } from "./widgets.js";
import { duration, number } from "./format.js";

/** Bytes of a file: the server takes bodies of two million. */
const MOST_FILE = 1_400_000;
const MOST_SCORES = 20;

/** Renewed when `stamp` changes: weights may have been committed, or removed. */
export function Demo({ experiment, trial, stamp, change }) {
  const [offer, setOffer] = useState({});
  useEffect(() => {
    let ended = false;
    get(of(experiment, `/trials/${trial}/infer`)).then((told) => ended || setOffer({ told }), (error) => ended || setOffer({ error }));
    return () => {
      ended = true;
    };
  }, [experiment, trial, stamp]);
  const { told, error } = offer;
  if (!told && !error) return null;
  return html`<${Panel} title="ask the model">
    <${Problem} error=${error} />
    ${told && !told.available && html`<${Empty}><${Foreign} text=${told.why} />${told.hint && html`. <${Foreign} text=${told.hint} />`}<//>`}
    ${told?.available && !change && html`<${Empty}>Asking runs the trial's code, which a link that only reads may not.<//>`}
    ${told?.available && change && html`<${Form} experiment=${experiment} trial=${trial} inputs=${told.inputs} />`}<//>`;
}

/** The request that a form begins with. */
export function begun(inputs) {
  const values = {};
  for (const one of inputs) {
    if (one.default !== null) values[one.name] = one.default;
    else if (one.kind === "text") values[one.name] = "";
  }
  return values;
}

/** The names of the fields that have no value yet. */
export const missing = (inputs, values) => inputs.filter((one) => values[one.name] === undefined || values[one.name] === null).map((one) => one.name);

function Form({ experiment, trial, inputs }) {
  const fields = inputs ?? [];
  const [values, setValues] = useState(() => begun(fields));
  const [text, setText] = useState("{\n  \n}");
  const [state, setState] = useState({});
  const busy = useRef(false);
  const next = useRef(null);
  const alone = fields.length === 1 && fields[0].kind === "drawing";

  // One request at a time; of those that come meanwhile the last one counts.
  const ask = async (body) => {
    if (busy.current) {
      next.current = body;
      return;
    }
    busy.current = true;
    setState((before) => ({ ...before, busy: true }));
    try {
      const answer = await changeIt("POST", of(experiment, `/trials/${trial}/infer`), body);
      setState({ answer });
    } catch (error) {
      setState({ error });
    }
    busy.current = false;
    const then = next.current;
    next.current = null;
    if (then) ask(then);
  };
  const put = (name, value) => {
    setValues((before) => ({ ...before, [name]: value }));
    if (alone && value !== null) ask(write({ request: { [name]: value } }));
    if (alone && value === null) setState({});
  };
  let fault = "";
  if (!inputs) {
    try {
      const given = JSON.parse(text);
      if (given === null || typeof given !== "object" || Array.isArray(given)) fault = "a request is an object: { … }";
    } catch (error) {
      fault = String(error.message);
    }
  }
  const lacks = missing(fields, values);
  const submit = (event) => {
    event.preventDefault();
    // The text itself goes, so that numbers keep all of their digits.
    ask(inputs ? write({ request: values }) : `{"request":${text}}`);
  };
  const tidy = text.replace(/\s*\n\s*/g, " ").trim();
  return html`<form class="demo" onSubmit=${submit}>
    <div class="fields">${fields.map((one) => html`<${Field} key=${one.name} one=${one} value=${values[one.name]} put=${(value) => put(one.name, value)} />`)}
      ${!inputs && html`<label class="block">request, as JSON
        <textarea rows="5" spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)} aria-invalid=${fault !== ""}></textarea></label>`}
      ${fault && html`<p class="warn" role="status">${fault}</p>`}
      <div><button type="submit" class="main" disabled=${state.busy || fault !== "" || lacks.length > 0}>${state.busy ? "asking …" : "ask"}</button>
        ${lacks.length > 0 && !alone && html` <span class="quiet">missing: ${lacks.join(", ")}</span>`}</div></div>
    <div class="answer" aria-live="polite"><${Problem} error=${state.error} />${state.answer && html`<${Answer} told=${state.answer} />`}
      ${!state.answer && !state.error && html`<p class="quiet">${state.busy ? "Loading the model …" : alone ? "Draw, and the model answers." : "The answer comes here."}</p>`}</div>
    <p class="as-command"><${Command} text=${inputs ? COMMANDS.infer(experiment, trial, fields, values) : COMMANDS.inferJson(experiment, trial, tidy)} /></p></form>`;
}

function Field({ one, value, put }) {
  const [fault, setFault] = useState("");
  const label = one.label || one.name;
  const file = async (event) => {
    const chosen = event.target.files[0];
    setFault("");
    if (!chosen) return put(null);
    if (chosen.size > MOST_FILE) {
      setFault(`a file has ${MOST_FILE / 1e6} MB at most; bequeath infer takes larger ones`);
      return put(null);
    }
    return put({ base64: encoded(new Uint8Array(await chosen.arrayBuffer())) });
  };
  const choose = html`<input type="file" accept="image/*" onChange=${file} aria-label=${`${label}: an image file`} />`;
  const said = fault && html`<p class="warn" role="status">${fault}</p>`;
  if (one.kind === "number") {
    return html`<label class="block"><${Foreign} text=${label} /> <input type="number" step=${one.step ?? "any"} min=${one.minimum ?? undefined} max=${one.maximum ?? undefined}
      value=${value ?? ""} onInput=${(event) => put(event.target.value === "" || !Number.isFinite(event.target.valueAsNumber) ? null : event.target.valueAsNumber)} /></label>`;
  }
  if (one.kind === "text") {
    return html`<label class="block"><${Foreign} text=${label} /> <textarea rows="3" value=${value ?? ""} onInput=${(event) => put(event.target.value)}></textarea></label>`;
  }
  if (one.kind === "image") return html`<div><div><${Foreign} text=${label} /></div>${choose}${said}</div>`;
  return html`<div><div><${Foreign} text=${label} /></div><${Drawing} width=${one.width} height=${one.height} label=${label} onDrawn=${put} />
    <div class="small-print quiet">or ${choose}</div>${said}</div>`;
}

/** Bytes in base64. */
export function encoded(content) {
  let text = "";
  for (let at = 0; at < content.length; at += 8192) text += String.fromCharCode(...content.subarray(at, at + 8192));
  return btoa(text);
}

/** An answer with `answer` and `scores`, as [answer, scores, the rest]; null for any other. */
export function scored(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  const { answer, scores, ...rest } = value;
  if (answer === undefined || scores === null || typeof scores !== "object" || Array.isArray(scores)) return null;
  const pairs = Object.entries(scores);
  if (pairs.length === 0 || !pairs.every(([, one]) => typeof one === "number")) return null;
  return { answer, scores: pairs.sort((a, b) => b[1] - a[1]), rest };
}

const shown = (value) => (typeof value === "string" ? value : write(value, 2));

function Answer({ told }) {
  const found = scored(told.answer);
  const small = told.answer === null || typeof told.answer !== "object";
  return html`${found ? html`<${Scored} found=${found} />`
    : small ? html`<p class="said"><${Foreign} text=${shown(told.answer)} most=${20000} /></p>`
    : html`<pre tabindex="0" aria-label="answer"><${Foreign} text=${shown(told.answer)} most=${100000} /></pre>`}
    <p class="quiet small-print">it took ${duration(told.took_s)}${told.loaded_s > 0 ? `, loading the model ${duration(told.loaded_s)}` : ""}</p>
    ${told.printed.trim() !== "" && html`<details><summary>what it printed</summary><pre tabindex="0" aria-label="what it printed"><${Foreign} text=${told.printed} most=${20000} /></pre></details>`}`;
}

function Scored({ found }) {
  const most = Math.max(found.scores[0][1], 1e-12);
  return html`<p class="said"><${Foreign} text=${shown(found.answer)} most=${2000} /></p>
    <table class="list small scores" aria-label="scores"><tbody>${found.scores.slice(0, MOST_SCORES).map(([name, value]) => html`<tr key=${name}><th scope="row"><${Foreign} text=${name} most=${80} /></th>
      <td><span class="track" aria-hidden="true"><span style=${{ width: `${Math.max(0, Math.min(100, (100 * value) / most))}%` }}></span></span></td><td class="right">${number(value, 3)}</td></tr>`)}</tbody></table>
    ${found.scores.length > MOST_SCORES && html`<p class="quiet small-print">The highest ${MOST_SCORES} of ${found.scores.length}.</p>`}
    ${Object.keys(found.rest).length > 0 && html`<pre tabindex="0" aria-label="what else it answers"><${Foreign} text=${shown(found.rest)} most=${20000} /></pre>`}`;
}
