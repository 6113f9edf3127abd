/** What a child changed against its parent, in words, as `bequeath lineage` says it. Pure. */
import { write } from "./json.js";

/** Parameters as flat names: `block.kernel`, lists as they are. */
export function flatten(value, before = "", into = Object.create(null)) {  // names may be any
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    into[before || "value"] = value;
    return into;
  }
  for (const [key, one] of Object.entries(value)) {
    const name = before ? `${before}.${key}` : key;
    if (one !== null && typeof one === "object" && !Array.isArray(one) && Object.keys(one).length) flatten(one, name, into);
    else into[name] = one;
  }
  return into;
}

export const same = (a, b) => a === b || sorted(a) === sorted(b);

function sorted(value) {
  if (value === null || typeof value !== "object") return write(value ?? null);
  if (Array.isArray(value)) return `[${value.map(sorted).join()}]`;
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${sorted(value[key])}`).join()}}`;
}

/**
 * The differences of two sets of parameters.
 * @returns {{name: string, words: string, before: any, after: any, kind: "changed" | "new" | "gone"}[]}
 */
export function differences(before, after) {
  const old = flatten(before ?? {});
  const now = flatten(after ?? {});
  const found = [];
  for (const [name, value] of Object.entries(now)) {
    if (!(name in old)) found.push({ name, words: `${name} + ${short(value)}`, before: undefined, after: value, kind: "new" });
    else if (!same(old[name], value)) {
      for (const words of phrases(name, old[name], value)) found.push({ name, words, before: old[name], after: value, kind: "changed" });
    }
  }
  for (const [name, value] of Object.entries(old)) {
    if (!(name in now)) found.push({ name, words: `${name} − ${short(value)}`, before: value, after: undefined, kind: "gone" });
  }
  return found;
}

function phrases(name, before, after) {
  if (!Array.isArray(before) || !Array.isArray(after) || Math.max(before.length, after.length) > 200) {
    return [`${name}  ${short(before)} → ${short(after)}`];
  }
  // What both begin and end with stays; between, entry by entry.
  let start = 0;
  while (start < Math.min(before.length, after.length) && same(before[start], after[start])) start += 1;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && same(before.at(-1 - end), after.at(-1 - end))) end += 1;
  const found = [];
  const [oldEnd, newEnd] = [before.length - end, after.length - end];
  for (let at = start; at < Math.max(oldEnd, newEnd); at += 1) {
    if (at >= newEnd) found.push(`${name} − ${short(before[at])}`);
    else if (at >= oldEnd) found.push(`${name} + ${short(after[at])}`);
    else if (!same(before[at], after[at])) found.push(...entry(`${name}[${at}]`, before[at], after[at]));
  }
  return found;
}

function entry(name, before, after) {
  const plain = (one) => one !== null && typeof one === "object" && !Array.isArray(one);
  if (plain(before) && plain(after) && same(Object.keys(before).sort(), Object.keys(after).sort())) {
    return differences(before, after).map((one) => `${name}.${one.words}`);
  }
  return [`${name}  ${short(before)} → ${short(after)}`];
}

function short(value) {
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(4)));
  const text = typeof value === "string" ? value : write(value ?? null);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
