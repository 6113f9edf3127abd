/** Who waits for whom: requests by the parent that they wait for, down to what really runs. Pure. */

/**
 * Groups of waiters, the longest first.
 * @param {{trial: number, mode: string, place: string, for: number[], for_s: number}[]} waiting
 * @returns {{parents: number[], place: string, waiters: {trial: number, for_s: number}[], longest: number}[]}
 */
export function groups(waiting) {
  const found = new Map();
  for (const one of waiting) {
    const parents = [...(one.for ?? [])].sort((a, b) => a - b);
    const key = `${one.mode}|${parents.join()}|${one.place ?? ""}`;
    if (!found.has(key)) found.set(key, { parents, mode: one.mode, place: one.place ?? "", waiters: [], longest: 0 });
    const group = found.get(key);
    group.waiters.push({ trial: one.trial, for_s: one.for_s });
    group.longest = Math.max(group.longest, one.for_s);
  }
  for (const group of found.values()) group.waiters.sort((a, b) => b.for_s - a.for_s);
  return [...found.values()].sort((a, b) => b.waiters.length - a.waiters.length || b.longest - a.longest);
}

/** From a parent on: what it waits for itself, until something runs. A ring ends where it closes. */
export function chain(trial, waiting) {
  const by = new Map(waiting.map((one) => [one.trial, one.for ?? []]));
  const found = [trial];
  let at = trial;
  while (by.has(at) && by.get(at).length) {
    [at] = by.get(at);
    if (found.includes(at)) break;
    found.push(at);
  }
  return found;
}

/** The median of how long trials took that ended: the estimate for one that runs. */
export function usual(table) {
  return table.once("usual", () => {
    const took = [...table.numbers("took").subarray(0, table.count)].filter((one) => one >= 0).sort((a, b) => a - b);
    return took.length >= 3 ? took[Math.floor(took.length / 2)] : null;
  });
}
