/**
 * A run that was saved as one file: its data lie in the document, compressed, and nothing is asked.
 * Each part is a block of text that no browser runs; it is unpacked when somebody looks at it.
 */
import { parse } from "./json.js";

const block = (name) => globalThis.document?.getElementById(`part-${name}`) ?? null;

/** Whether this page is such a file. */
export const exported = block("run") !== null;

const unpacked = new Map();

/** The content of a part; each is unpacked once. */
export function part(name) {
  if (!unpacked.has(name)) unpacked.set(name, unpack(name));
  return unpacked.get(name);
}

async function unpack(name) {
  if (typeof DecompressionStream !== "function") throw new Error("this browser is too old for the file: it cannot unpack its data");
  const packed = Uint8Array.from(atob(block(name).textContent.trim()), (mark) => mark.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return parse(await new Response(stream).text());
}

/** The answer to a path below /api/v1, as a server would give it; undefined if the file has none. */
export async function answered(path) {
  const run = await part("run");
  const [place, query = ""] = path.split("?");
  if (run.answers[place] !== undefined && !query) return run.answers[place];
  const below = place.startsWith(run.base) ? place.slice(run.base.length) : "";
  if (below === "/curves") return curves(run, new URLSearchParams(query));
  const found = /^\/trials\/(\d{1,15})(\/tensors)?$/.exec(below);
  if (!found) return undefined;
  const trial = await within(run, found[2] ? "tensors" : "trials", found[1]);
  return trial && !found[2] ? whole(run, trial) : trial;
}

/** The end of a log that the file has: its text, where it begins, and how long the whole is. */
export async function savedLog(trial, stream) {
  const run = await part("run");
  return (await within(run, "logs", `${trial}/${stream}`)) ?? null;
}

async function within(run, kind, key) {
  const at = run.parts[kind]?.findIndex((keys) => keys.includes(key)) ?? -1;
  return at < 0 ? undefined : (await part(`${kind}-${at}`))[key];
}

/** A trial as `trial show` has it: the file keeps the points of its curve only. */
function whole(run, { trial, attempts, children, curve, unnumbered, final }) {
  const plain = { attempt: curve?.attempt ?? 0, at: null, counted: true };
  const metrics = (curve?.steps ?? []).map((seq, at) => ({ ...plain, seq, final: false, value: curve.values[at], number: curve.values[at] }));
  for (let at = 0; at < unnumbered; at += 1) metrics.push({ ...plain, seq: 0, final: false, value: null, number: null });
  if (final) metrics.push({ ...plain, seq: 0, final: true, value: trial.result, number: trial.value });
  return { experiment: run.experiment, trial, attempts, metrics, children };
}

async function curves(run, query) {
  const wanted = (query.get("trials") ?? "").split(",").filter(Boolean);
  const found = await Promise.all(wanted.map(async (one) => {
    const told = await within(run, "trials", one);
    return { trial: Number(one), steps: told?.curve?.steps ?? [], values: told?.curve?.values ?? [] };
  }));
  return { metric: "", curves: found };
}
