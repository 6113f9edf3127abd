/** The header of all pages: where one is, why nothing more runs, whether the line holds. */
import { html, useState } from "./ui.js";
import { exported } from "./exported.js";
import { PAGES, home, link } from "./route.js";
import { THEMES, theme, setTheme } from "./colours.js";
import { Foreign, State, useNow } from "./widgets.js";
import { ago, duration, time } from "./format.js";
import { Mends } from "./mending.js";
import { WhyText, causeInWords } from "./why.js";

export function Frame({ where, session, live, change, children }) {
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <header class="top">
      <nav aria-label="site">
        <a class="brand" href=${home()}>bequeath</a>
        ${where.experiment && html`<span class="quiet" aria-hidden="true">▸</span>
          <a class="name" href=${link(where.experiment)}><${Foreign} text=${live?.standing?.experiment.name ?? where.experiment} most=${60} /></a>`}
        ${!where.experiment && html`<a href="leaderboard" aria-current=${where.page === "leaderboard" ? "page" : undefined}>leaderboard</a>`}
      </nav>
      ${where.experiment && html`<nav class="pages" aria-label="pages of the experiment">
        ${PAGES.map(([word, title]) => {
          const current = where.page === (word || "overview") || (word === "trials" && where.page === "trial");
          return html`<a href=${link(where.experiment, word)} aria-current=${current ? "page" : undefined}>${title}</a>`;
        })}</nav>`}
      <div class="end">
        ${session?.saved_at && html`<span class="tag" title="a file, as of then; it asks nobody">saved ${time(session.saved_at)}</span>`}
        ${session?.scope === "read" && !exported && html`<span class="tag" title="this link only reads">read only</span>`}
        ${session?.scope === "change" && !exported && html`<a href="settings" aria-current=${where.page === "settings" ? "page" : undefined}>settings</a>`}
        <${Theme} />
        <button type="button" class="plain" title="keys" aria-label="keys of this page" onClick=${() => document.dispatchEvent(new Event("keys"))}>?</button>
      </div>
    </header>
    ${live?.standing && live.line !== "refused" && html`<${Why} live=${live} experiment=${where.experiment} change=${change} />`}
    ${live && html`<${Line} live=${live} />`}
    ${session?.left_out?.length > 0 && html`<details class="left-out"><summary>What this file leaves out</summary><ul>${session.left_out.map((one) => html`<li><${Foreign} text=${one} most=${600} /></li>`)}</ul></details>`}
    ${children}`;
}

function skip(event) {
  event.preventDefault();
  const main = document.getElementById("main");
  main?.setAttribute("tabindex", "-1");
  main?.focus();
}

function Theme() {
  const [chosen, setChosen] = useState(theme());
  const next = () => {
    const at = THEMES.findIndex(([word]) => word === chosen);
    const [word] = THEMES[(at + 1) % THEMES.length];
    setTheme(word);
    setChosen(word);
  };
  const shown = THEMES.find(([word]) => word === chosen)?.[1] ?? THEMES[0][1];
  return html`<button type="button" class="plain" onClick=${next} title="light, dark, or as the system">${shown}</button>`;
}

/** Why nothing, or not more, runs: the first line of each page of an experiment. */
function Why({ live, experiment, change }) {
  const { experiment: summary, head } = live.standing;
  const text = head?.why?.text ?? summary.phase_reason ?? "";
  const cause = head?.why?.cause ?? "";
  return html`
    <section class="why" aria-label="why" aria-live="polite">
      <${State} word=${head?.phase ?? summary.status} />
      <span class="why-text">${text ? html`<${WhyText} text=${text} experiment=${experiment} workers=${head?.workers.map((one) => one.name)} />` : head ? "Nothing is in the way." : `The experiment is ${summary.status}; no head runs.`}</span>
      ${cause && html`<span class="quiet cause"><${Foreign} text=${causeInWords(cause)} most=${80} /></span>`}
      <${Mends} live=${live} experiment=${experiment} change=${change} />
      <${Heard} live=${live} />
      ${head?.troubles?.length > 0 && html`<ul class="troubles">${head.troubles.slice(0, 5).map((one) => html`<li><${Foreign} text=${one} most=${600} /></li>`)}</ul>`}
    </section>`;
}

function Heard({ live }) {
  const now = useNow(1);
  if (live.line === "file") return html`<span class="heard quiet">as of ${time(live.heardAt)}</span>`;
  if (live.line === "live" || live.line === "asking") {
    return html`<span class="heard quiet" title=${live.line === "asking" ? "no stream passes here; the page asks" : "changes arrive as they happen"}>
      <span class="dot on" aria-hidden="true"></span> ${live.line === "asking" ? "live (asking)" : "live"}${live.heardAt && now - live.heardAt > 20 ? ` · last change ${ago(live.heardAt, now)}` : ""}</span>`;
  }
  return html`<span class="heard quiet"><span class="dot" aria-hidden="true"></span> not live</span>`;
}

/** Statuses in which nobody misses a head. */
const OVER = new Set(["completed", "stopped", "failed", "created"]);

/** A line when the connection or the head is gone. */
function Line({ live }) {
  const now = useNow(1);
  if (live.line === "away") {
    return html`<div class="gone" role="alert">The server of this page has not answered for ${duration(Math.max(1, now - (live.awaySince ?? now)))}; the page tries again. What it shows is as of ${time(live.heardAt || live.awaySince)}.</div>`;
  }
  if (live.headGone !== null && !OVER.has(live.standing?.experiment.status)) {
    return html`<div class="gone" role="alert">The head has not answered since ${time(live.headGone)} (${ago(live.headGone, now)}): what it alone knows is as it was then. <code>bequeath resume</code> takes the experiment up if it has died.</div>`;
  }
  return null;
}
