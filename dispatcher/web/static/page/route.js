/** Addresses: the page is a path below the base, and all that one has chosen stands in the query. */

/** Pages of an experiment: their words in the address, titles and keys after `g`. */
export const PAGES = [
  ["", "overview", "o"], ["trials", "trials", "t"], ["lineage", "lineage", "l"],
  ["waits", "waits", "w"], ["hosts", "hosts", "h"], ["plots", "plots", "p"], ["compare", "compare", "c"],
  ["checks", "checks", "k"],
];

/**
 * Reads an address.
 * @param {string} path below the base, without it
 * @returns {{page: string, experiment?: string, trial?: number}}
 */
export function readPath(path) {
  const parts = path.split("/").filter(Boolean).map(decoded);
  if (parts.length === 0) return { page: "experiments" };
  if (parts.length === 1 && ["leaderboard", "settings"].includes(parts[0])) return { page: parts[0] };
  if (parts[0] === "e" && parts[1]) {
    const experiment = parts[1];
    if (parts.length === 2) return { page: "overview", experiment };
    if (parts[2] === "t" && /^\d{1,15}$/.test(parts[3] ?? "") && parts.length === 4) {
      return { page: "trial", experiment, trial: Number(parts[3]) };
    }
    if (parts.length === 3 && PAGES.some(([word]) => word && word === parts[2])) {
      return { page: parts[2], experiment };
    }
  }
  return { page: "nowhere" };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

let root = "";
/** What all addresses begin with: nothing, or `#/` in a page that is a file. */
export function setRoot(text) {
  root = text;
}

/** The address of the list of experiments. */
export const home = () => root || "./";

/** The address of a page of an experiment, relative to the base. */
export function link(experiment, page = "", query = {}) {
  return `${root}e/${encodeURIComponent(experiment)}${page ? `/${page}` : ""}${writeQuery(query)}`;
}

/** The address of a trial, relative to the base. */
export function trialLink(experiment, trial, query = {}) {
  return link(experiment, `t/${trial}`, query);
}

/** A query of what is not empty, in the order given. */
export function writeQuery(query) {
  const parts = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([key, value]) => `${encodeURIComponent(key)}=${tidy(String(value))}`);
  return parts.length ? `?${parts.join("&")}` : "";
}

// Commas and a few more stay readable: they mean nothing in a query.
const tidy = (text) =>
  encodeURIComponent(text).replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%20/g, "+");

/** Numbers of trials in a query, each once. */
export function readTrials(text, most = 8) {
  const found = (text ?? "").split(",").filter((one) => /^\d{1,15}$/.test(one)).map(Number);
  return [...new Set(found)].slice(0, most);
}
