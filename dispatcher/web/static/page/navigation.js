/** The browser's address bar and back button. The only module that knows them. */
import { exported } from "./exported.js";
import { readPath, setRoot, writeQuery } from "./route.js";

// A page that is a file has its addresses behind the #: a browser lets a file go nowhere else.
if (exported) setRoot("#/");

const base = () => new URL(document.baseURI).pathname;
const listeners = new Set();

/** Where we are: page, experiment, trial, and the query as a plain object. */
export function here() {
  if (exported) {
    const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
    return { ...readPath(path || document.documentElement.dataset.start), query: Object.fromEntries(new URLSearchParams(query)) };
  }
  const path = location.pathname.startsWith(base())
    ? location.pathname.slice(base().length) : location.pathname;
  return { ...readPath(path), query: Object.fromEntries(new URLSearchParams(location.search)) };
}

const announce = () => listeners.forEach((listener) => listener());

/** Goes to an address below the base. */
export function go(address) {
  history.pushState(null, "", new URL(address, document.baseURI));
  scrollTo(0, 0);
  announce();
}

/** Changes what stands in the query; keys with "" or null go. The back button skips it. */
export function choose(changes) {
  const query = { ...here().query, ...changes };
  const path = exported ? `#${location.hash.replace(/^#/, "").split("?")[0] || `/${document.documentElement.dataset.start}`}` : location.pathname;
  history.replaceState(null, "", path + writeQuery(query));
  announce();
}

/** Calls back at each change of the address; returns how to end that. */
export function onAddress(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

addEventListener("popstate", announce);

// Links of the page stay in the page: no reload. Others, and those with a key held, are the browser's.
document.addEventListener("click", (event) => {
  const anchor = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!anchor || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (anchor.hasAttribute("download") || anchor.target || event.defaultPrevented) return;
  if (exported) {
    if (!anchor.getAttribute("href").startsWith("#/")) return;
    event.preventDefault();
    go(anchor.getAttribute("href"));
    return;
  }
  const target = new URL(anchor.href);
  const within = target.pathname.slice(base().length);
  if (target.origin !== location.origin || !target.pathname.startsWith(base())) return;
  if (/^(api|assets|login)(\/|$)/.test(within)) return;
  event.preventDefault();
  go(anchor.href);
});
