/** The page as a whole: where we are, who we are, and the frame around each page. */
import { html, render, useEffect, useState } from "./ui.js";
import { get } from "./api.js";
import { home } from "./route.js";
import { useTimeLapse } from "./timelapse.js";
import { here, onAddress } from "./navigation.js";
import { theme, setTheme } from "./colours.js";
import { Frame } from "./frame.js";
import { Live } from "./live.js";
import { Problem } from "./widgets.js";
import { Keys } from "./keyboard.js";

/** Pages are loaded when somebody goes there: the module, and the name of its page. */
const PAGES = {
  experiments: [() => import("../pages/experiments.js"), "Experiments"],
  leaderboard: [() => import("../pages/leaderboard.js"), "Leaderboard"],
  settings: [() => import("../pages/settings.js"), "Settings"],
  overview: [() => import("../pages/overview.js"), "Overview"],
  trials: [() => import("../pages/trials.js"), "Trials"],
  trial: [() => import("../pages/trial.js"), "Trial"],
  lineage: [() => import("../pages/lineage.js"), "Lineage"],
  waits: [() => import("../pages/waits.js"), "Waits"],
  hosts: [() => import("../pages/hosts.js"), "Hosts"],
  plots: [() => import("../pages/plots.js"), "Plots"],
  compare: [() => import("../pages/compare.js"), "Compare"],
  checks: [() => import("../pages/checks.js"), "Checks"],
};
const loaded = {};

/** The page of a name: null while it comes. */
function usePage(name) {
  const [, again] = useState(0);
  const [failed, setFailed] = useState(null);
  useEffect(() => {
    if (loaded[name] || !PAGES[name]) return;
    const [load, word] = PAGES[name];
    load().then((module) => {
      loaded[name] = module[word];
      again((count) => count + 1);
    }, () => setFailed(name));
  }, [name]);
  if (failed === name) return Unloaded;
  return PAGES[name] ? loaded[name] ?? null : Nowhere;
}

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
  const Page = usePage(where.page);
  if (refused && refused.status === 401) {
    return html`<${Frame} where=${where}><main id="main"><${Problem} error=${refused} /></main><//>`;
  }
  if (where.experiment) return html`<${Experiment} key=${where.experiment} where=${where} session=${session} change=${change} Page=${Page} />`;
  return html`<${Frame} where=${where} session=${session}>${Page && html`<${Page} where=${where} change=${change} session=${session} />`}<${Keys} where=${where} /><//>`;
}

/** All pages of one experiment share what is known of it, and its stream. */
function Experiment({ where: address, session, change, Page }) {
  const asked = address.experiment;
  const [live, setLive] = useState(null);
  const [, again] = useState(0);
  useEffect(() => {
    const begun = new Live(asked);
    setLive(begun);
    const end = begun.subscribe(() => again((count) => count + 1));
    return () => {
      end();
      begun.close();
    };
  }, [asked]);
  const lapse = useTimeLapse(address, live);
  const name = live?.standing?.experiment.name ?? asked;
  // An address may have the beginning of an id, or a name; what changes something names the whole id.
  const where = { ...address, experiment: live?.standing?.experiment.id ?? asked };
  useEffect(() => {
    const what = where.page === "trial" ? `trial ${where.trial}` : where.page;
    document.title = `${what} · ${name} · bequeath`;
  }, [where.page, where.trial, name]);
  return html`
    <${Frame} where=${where} session=${session} live=${live} change=${change}>
      ${live?.error && live.line !== "away" && html`<main id="main"><${Problem} error=${live.error}><p><a href=${home()}>All experiments</a></p><//></main>`}
      ${(!live?.table || !Page) && !live?.error && html`<main id="main"><p class="quiet" role="status">Reading the trials …</p></main>`}
      ${live?.table && live.line !== "refused" && lapse.bar}
      ${Page && live?.table && live.line !== "refused" && html`<${Page} where=${where} live=${lapse.live} version=${lapse.live.table.version} change=${change && lapse.live === live} />`}
      <${Keys} where=${where} />
    <//>`;
}

const Unloaded = () => html`<main id="main"><h1>This part of the page could not be loaded</h1><p><button type="button" onClick=${() => location.reload()}>load the page again</button></p></main>`;

const Nowhere = () => html`<main id="main"><h1>There is no such page</h1><p><a href=${home()}>All experiments</a></p></main>`;

setTheme(theme());
const root = document.getElementById("page");
root.textContent = "";
render(html`<${App} />`, root);
