/** The page as a whole: where we are, who we are, and the frame around each page. */
import { html, render, useEffect, useState } from "./ui.js";
import { get } from "./api.js";
import { here, onAddress } from "./navigation.js";
import { theme, setTheme } from "./colours.js";
import { Frame } from "./frame.js";
import { Live } from "./live.js";
import { Problem } from "./widgets.js";
import { Keys } from "./keyboard.js";

import { Experiments } from "../pages/experiments.js";
import { Leaderboard } from "../pages/leaderboard.js";
import { Overview } from "../pages/overview.js";
import { Trials } from "../pages/trials.js";
import { Trial } from "../pages/trial.js";
import { Lineage } from "../pages/lineage.js";
import { Waits } from "../pages/waits.js";
import { Hosts } from "../pages/hosts.js";
import { Compare } from "../pages/compare.js";
import { Checks } from "../pages/checks.js";

const WITHIN = {
  overview: Overview, trials: Trials, trial: Trial, lineage: Lineage, waits: Waits, hosts: Hosts,
  compare: Compare, checks: Checks,
};

function App() {
  const [, again] = useState(0);
  const [session, setSession] = useState(null);
  const [refused, setRefused] = useState(null);
  useEffect(() => onAddress(() => again((count) => count + 1)), []);
  useEffect(() => {
    get("/session").then(setSession, setRefused);
  }, []);
  const where = here();
  const change = session?.scope === "change";
  if (refused && refused.status === 401) {
    return html`<${Frame} where=${where}><main id="main"><${Problem} error=${refused} /></main><//>`;
  }
  if (where.experiment) return html`<${Experiment} key=${where.experiment} where=${where} session=${session} change=${change} />`;
  const Page = { experiments: Experiments, leaderboard: Leaderboard }[where.page] ?? Nowhere;
  return html`<${Frame} where=${where} session=${session}><${Page} where=${where} change=${change} /><${Keys} where=${where} /><//>`;
}

/** All pages of one experiment share what is known of it, and its stream. */
function Experiment({ where, session, change }) {
  const [live, setLive] = useState(null);
  const [, again] = useState(0);
  useEffect(() => {
    const begun = new Live(where.experiment);
    setLive(begun);
    const end = begun.subscribe(() => again((count) => count + 1));
    return () => {
      end();
      begun.close();
    };
  }, [where.experiment]);
  const Page = WITHIN[where.page] ?? Nowhere;
  const name = live?.standing?.experiment.name ?? where.experiment;
  useEffect(() => {
    const what = where.page === "trial" ? `trial ${where.trial}` : where.page;
    document.title = `${what} · ${name} · bequeath`;
  }, [where.page, where.trial, name]);
  return html`
    <${Frame} where=${where} session=${session} live=${live} change=${change}>
      ${live?.error && live.line !== "away" && html`<main id="main"><${Problem} error=${live.error}><p><a href="./">All experiments</a></p><//></main>`}
      ${!live?.table && !live?.error && html`<main id="main"><p class="quiet" role="status">Reading the trials …</p></main>`}
      ${live?.table && live.line !== "refused" && html`<${Page} where=${where} live=${live} version=${live.table.version} change=${change} />`}
      <${Keys} where=${where} />
    <//>`;
}

const Nowhere = () => html`<main id="main"><h1>There is no such page</h1><p><a href="./">All experiments</a></p></main>`;

setTheme(theme());
const root = document.getElementById("page");
root.textContent = "";
render(html`<${App} />`, root);
