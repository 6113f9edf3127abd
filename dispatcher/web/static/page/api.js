/** Requests to the server. One of a kind is under way at a time; an error has the server's words. */
import { answered, exported } from "./exported.js";
import { parse, write } from "./json.js";

/** An error as the server tells it, or a connection that failed (`status` 0). */
export class ApiError extends Error {
  constructor(status, { kind = "", message = "", hint = "", where = "" } = {}, retryAfter = null) {
    super(message || `the server answered ${status}`);
    Object.assign(this, { status, kind, hint, where, retryAfter });
  }

  get gone() {
    return this.status === 0;
  }
}

export const address = (path) => new URL(`api/v1${path}`, document.baseURI).href;

const one = (word) => encodeURIComponent(String(word));
/** The path of an experiment, or of what is below it. */
export const of = (experiment, rest = "") => `/experiments/${one(experiment)}${rest}`;

const underWay = new Map();
const early = new Map();

/** Asks for something before anybody wants it; the first who does gets this answer. */
export function ahead(path) {
  const asked = request("GET", path);
  asked.catch(() => {});
  early.set(path, asked);
}

/**
 * Reads a path. Who asks for what is being asked for gets the same answer.
 * @param {string} path below /api/v1
 */
export function get(path) {
  const known = underWay.get(path) ?? early.get(path);
  early.delete(path);
  if (known) return known;
  const asked = request("GET", path).finally(() => underWay.delete(path));
  underWay.set(path, asked);
  return asked;
}

/** Changes something. `body` is a value, or JSON text if it is a string. */
export function change(method, path, body = undefined) {
  const text = body === undefined || typeof body === "string" ? body : write(body);
  return request(method, path, text ?? (method === "DELETE" ? undefined : "{}"));
}

/** What a run that was saved as one file has to say. */
async function saved(method, path) {
  const told = method === "GET" ? await answered(path) : undefined;
  if (told !== undefined) return told;
  throw new ApiError(404, { kind: "left-out", message: "this is not in the file that was saved",
    hint: "the page that bequeath web serves has it, where the experiment is" });
}

async function request(method, path, body) {
  if (exported) return saved(method, path);
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["X-Bequeath"] = "1";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(address(path), { method, headers, body, credentials: "same-origin" });
    const text = await answer.text();
    if (answer.ok) return text ? parse(text) : null;
    throw failure(answer, text);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (answer?.ok) throw new ApiError(answer.status, { message: "the answer cannot be read" });
    throw new ApiError(0, { message: "the server of this page does not answer" });
  }
}

export function failure(answer, text) {
  const retryAfter = Number(answer.headers.get("Retry-After")) || null;
  let told = {};
  try {
    told = JSON.parse(text).error ?? {};
  } catch {
    told = { message: answer.status === 401 ? "this browser is not signed in" : "" };
  }
  if (answer.status === 401 && !told.hint) told.hint = "bequeath web --link prints a link that signs in";
  return new ApiError(answer.status, told, retryAfter);
}
