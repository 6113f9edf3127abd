/** What can be done about the cause that keeps slots empty: where to look, and changes by click. */
import { html, useState } from "./ui.js";
import { link, trialLink } from "./route.js";
import { pieces } from "./why.js";
import { Problem } from "./widgets.js";
import { count } from "./format.js";

/** Causes of which the hosts tell more. */
const OF_HOSTS = new Set(["WORKER_LOST", "WORKER_WAITS", "WORKER_SUSPECT", "WORKER_QUARANTINED", "NO_FREE_SLOT", "PLACE_ENDS", "RESERVED", "PARENTS_DOMAIN", "NO_FREE_GPU", "NO_ROOM", "DISK_LOW"]);
/** Causes that trials which failed are behind. */
const OF_TRIALS = new Set(["WORKER_QUARANTINED", "TRIALS_FAIL", "BACKOFF"]);
/** Statuses from which an experiment can be taken up. */
const RESUMED = new Set(["interrupted", "stopped", "failed", "created"]);

/**
 * The ways out of what is in the way: links (`page`, `trial`), and dialogs that change something. Pure.
 * @returns {{word: string, title: string, page?: string, query?: object, trial?: number, dialog?: string, start?: object}[]}
 */
export function mends({ head, experiment: summary }) {
  const found = [];
  if (!head) {
    const many = summary.status === "completed" && summary.max_trials ? [more(summary.max_trials)] : [];
    if (many.length || RESUMED.has(summary.status)) found.push(...many, { word: "resume…", title: "take the experiment up", dialog: "resume" });
    return found;
  }
  const { cause = "", text = "" } = head.why ?? {};
  if (cause === "LOOKAHEAD_FULL") found.push(limit("lookahead", 2 * head.lookahead, `raise lookahead to ${count(2 * head.lookahead)}…`, "let more requests wait"));
  if (cause === "ALL_PROPOSED" && head.max_trials) found.push(more(head.max_trials));
  if (cause === "DISK_LOW") found.push({ word: "free space…", title: "remove weights that nothing needs", dialog: "sweep" });
  if (cause === "TRIALS_FAIL" || cause === "ABANDONED") found.push({ word: "trials that failed", title: "the list of them", page: "trials", query: { where: "outcome=failed", sort: "-ended" } });
  if (OF_TRIALS.has(cause)) {
    const named = pieces(text).filter((piece) => piece.trial !== undefined);
    if (named.length) found.push({ word: `log of ${named.at(-1).trial}`, title: "what it wrote", trial: named.at(-1).trial });
  }
  if (OF_HOSTS.has(cause)) found.push({ word: "hosts", title: "workers, and what they have", page: "hosts" });
  return found;
}

const limit = (key, value, word, title) => ({ word, title, dialog: "limits", start: { key, value: String(value) } });
const more = (now) => limit("maxTrialNumber", 2 * now, "more trials…", "raise the number of trials in all");

/** Buttons and links beside the sentence. Who only reads has the links. */
export function Mends({ live, experiment, change }) {
  const [open, setOpen] = useState(null);
  const [dialogs, setDialogs] = useState(null);
  const [failed, setFailed] = useState(false);
  const ways = mends(live.standing).filter((one) => change || !one.dialog);
  if (!ways.length && !open) return null;
  const show = async (one) => {
    try {
      setDialogs((await import("./controls.js")).DIALOGS);
      setOpen(one);
    } catch {
      setFailed(true);
    }
  };
  const close = () => {
    setOpen(null);
    live.refresh();
  };
  const Dialog = open && dialogs?.[open.dialog];
  return html`<span class="buttons mends">${ways.map((one) => (one.dialog
    ? html`<button type="button" class="small" key=${one.word} title=${one.title} onClick=${() => show(one)}>${one.word}</button>`
    : html`<a class="button" key=${one.word} title=${one.title} href=${one.trial === undefined ? link(experiment, one.page, one.query ?? {}) : trialLink(experiment, one.trial)}>${one.word}</a>`))}
    ${failed && html`<${Problem} error=${{ message: "this part of the page could not be loaded" }} />`}
    ${Dialog && html`<${Dialog} experiment=${experiment} summary=${live.standing.experiment} head=${live.standing.head} start=${open.start} onClose=${close} />`}</span>`;
}
