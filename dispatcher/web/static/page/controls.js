/** Stop, resume, kill, limits, submit: by click, with the command beside it. */
import { html, useEffect, useState } from "./ui.js";
import { change, get, of } from "./api.js";
import { COMMANDS } from "./commands.js";
import { trialLink } from "./route.js";
import { Ask, Choose, Problem } from "./widgets.js";
import { bytes, count, number, several } from "./format.js";

const LIMITS = [
  ["trialConcurrency", "trials at once"], ["maxTrialNumber", "trials in all"],
  ["maxExperimentDuration", "time in all, as 2h or 90m"], ["lookahead", "requests ahead"],
];

export function Controls({ experiment, summary, head, live }) {
  const [open, setOpen] = useState("");
  const close = () => {
    setOpen("");
    live.refresh();
  };
  const runs = summary.status === "running";
  const Dialog = { stop: Stop, kill: Kill, resume: Resume, limits: Limits, submit: Submit }[open];
  const button = (word, text, title) => html`<button type="button" onClick=${() => setOpen(word)} title=${title}>${text}</button>`;
  return html`<span class="buttons controls">
    ${runs && button("stop", "stop…", "stop the experiment; it can be resumed")}
    ${runs && button("kill", "kill…", "end its processes at once")}
    ${!runs && button("resume", "resume…", "take the experiment up")}
    ${button("limits", "limits…", "change a limit while it runs")}
    ${runs && button("submit", "submit…", "run a trial with parameters of your own")}
    ${Dialog && html`<${Dialog} experiment=${experiment} summary=${summary} head=${head} onClose=${close} />`}</span>`;
}

function Stop({ experiment, head, onClose }) {
  const [drain, setDrain] = useState(false);
  const running = head?.counts.running ?? 0;
  return html`<${Ask} title="Stop this experiment?" word="stop" danger onClose=${onClose} command=${COMMANDS.stop(experiment, { drain })}
    act=${async () => {
      const told = await change("POST", of(experiment, "/stop"), { drain, wait: false });
      return told.stopped ? "It has stopped." : drain ? "No new trials begin; those that run may finish." : "It is stopping.";
    }}>
    <p>It can be resumed. ${several(running, "trial")} ${running === 1 ? "runs" : "run"} now.</p>
    <label><input type="radio" name="drain" checked=${!drain} onChange=${() => setDrain(false)} /> end what runs; those trials begin anew when it is resumed</label>
    <label><input type="radio" name="drain" checked=${drain} onChange=${() => setDrain(true)} /> let what runs finish</label><//>`;
}

const Kill = ({ experiment, onClose }) => html`<${Ask} title="End all processes of this experiment at once?" word="kill" danger onClose=${onClose}
  command=${COMMANDS.kill(experiment)} act=${async () => `${several((await change("POST", of(experiment, "/kill"))).processes.length, "process", "processes")} ended.`}>
  <p>Nothing is asked to end well. What was committed stays, and the experiment can be resumed.</p><//>`;

const Resume = ({ experiment, onClose }) => html`<${Ask} title="Take up this experiment?" word="resume" onClose=${onClose}
  command=${COMMANDS.resume(experiment)} act=${async () => `A head leads it: process ${(await change("POST", of(experiment, "/resume"))).pid}.`}>
  <p>A head goes on where the last one ended, in the background.</p><//>`;

function Limits({ experiment, summary, head, onClose, start = {} }) {
  const [key, setKey] = useState(start.key ?? "trialConcurrency");
  const [text, setText] = useState(start.value ?? "");
  const now = {
    trialConcurrency: head?.slots ?? summary.slots, maxTrialNumber: head?.max_trials ?? summary.max_trials,
    lookahead: head?.lookahead, maxExperimentDuration: head?.max_duration_s ? `${number(head.max_duration_s)} s` : undefined,
  }[key];
  const value = /^\d+$/.test(text.trim()) ? Number(text) : text.trim();
  return html`<${Ask} title="Change a limit" word="change" onClose=${onClose} disabled=${!text.trim()}
    command=${text.trim() ? COMMANDS.update(experiment, key, value) : ""}
    act=${async () => {
      const told = await change("PATCH", of(experiment), { key, value });
      const words = [`${key} is ${text.trim()}${told.running ? "" : " from the next resume on"}.`];
      if (told.beyond) words.push(`${several(told.beyond, "trial")} beyond it had been proposed before.`);
      if (told.warning) words.push(told.warning);
      return words.join(" ");
    }}>
    <p><${Choose} label="limit" value=${key} options=${LIMITS.map(([word, what]) => [word, `${word}: ${what}`])} onChange=${setKey} /></p>
    <p><label>new value <input type="text" required value=${text} onInput=${(event) => setText(event.target.value)} autocomplete="off" /></label>
      ${now !== undefined && now !== null && html` <span class="quiet">now ${typeof now === "number" ? count(now) : now}</span>`}</p><//>`;
}

/** A form of parameters as JSON; `start` is the text it begins with. */
export function Submit({ experiment, onClose, start = "{\n  \n}", title = "Run a trial with parameters of your own", note, words }) {
  const [text, setText] = useState(start);
  let fault = "";
  let given = null;
  try {
    given = JSON.parse(text);
    if (given === null || typeof given !== "object" || Array.isArray(given)) fault = "parameters are an object: { … }";
  } catch (error) {
    fault = String(error.message);
  }
  const tidy = text.replace(/\s*\n\s*/g, " ").trim();
  return html`<${Ask} title=${title} word="submit" onClose=${onClose} disabled=${fault !== ""} command=${fault ? "" : COMMANDS.submit(experiment, tidy)}
    act=${async () => {
      // The text itself goes, so that numbers keep all of their digits.
      const told = await change("POST", of(experiment, "/trials"), `{"parameters":${text}}`);
      return html`It is <a href=${trialLink(experiment, told.trial)}>trial ${told.trial}</a>.`;
    }}>
    ${note}
    <label class="block">parameters, as JSON
      <textarea rows="14" spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)} aria-invalid=${fault !== ""}></textarea></label>
    ${fault ? html`<p class="warn" role="status">${fault}</p>` : words && html`<div role="status">${words(given)}</div>`}<//>`;
}

function Sweep({ experiment, onClose }) {
  const [plan, setPlan] = useState({});
  useEffect(() => {
    get(of(experiment, "/weights/plan")).then((told) => setPlan({ told }), (error) => setPlan({ error }));
  }, []);
  const { told, error } = plan;
  return html`<${Ask} title="Remove weights that nothing needs?" word="remove" danger disabled=${!told?.weights.length} onClose=${onClose} command=${COMMANDS.sweep(experiment)}
    act=${async () => {
      const done = await change("POST", of(experiment, "/weights/gc"));
      return `${several(done.weights.length, "trial")} without weights now, ${bytes(done.bytes)} free.`;
    }}>
    <${Problem} error=${error} />
    <p role="status">${!told ? (error ? "" : "Looking what could go …") : told.weights.length ? `The weights of ${several(told.weights.length, "trial")} would go, ${bytes(told.bytes)}: the file's retention keeps the others, and those that trials may still inherit.` : "Nothing can go: what is there is kept by the file's retention, or may still be inherited."}</p><//>`;
}

/** By their names, for buttons beside the sentence of why. */
export const DIALOGS = { resume: Resume, limits: Limits, sweep: Sweep };

/** Only the limits, for pages beside the overview. */
export function LimitsButton({ experiment, summary, head, live }) {
  const [open, setOpen] = useState(false);
  const close = () => {
    setOpen(false);
    live.refresh();
  };
  return html`<button type="button" onClick=${() => setOpen(true)}>limits…</button>
    ${open && html`<${Limits} experiment=${experiment} summary=${summary} head=${head} onClose=${close} />`}`;
}
