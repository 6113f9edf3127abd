/** Where each trial of a lineage lies: lanes by a walk of the forest, x by time or generation. Pure. */

/**
 * Gives each row a lane. The child with the most descendants goes on in its parent's lane, so there
 * are as many lanes as trials without children, and a line of descent stays straight.
 * @param {import("./table.js").Table} table
 * @param {Uint8Array | null} within 1 for rows that are shown; null: all
 * @returns {{lane: Int32Array, lanes: number, order: number[]}} -1 for rows that are not shown
 */
export function lanes(table, within = null) {
  const { children, count } = table;
  const lane = new Int32Array(count).fill(-1);
  const shown = (row) => !within || within[row] === 1;
  const roots = [];
  for (let row = 0; row < count; row += 1) {
    const above = table.parentRow(row);
    if (shown(row) && (above < 0 || !shown(above))) roots.push(row);
  }
  const size = sizes(children, roots, count, shown);
  const order = [];
  let next = 0;
  for (const root of roots) {
    const stack = [[root, next]];
    next += 1;
    while (stack.length) {
      const [row, at] = stack.pop();
      if (lane[row] >= 0) continue; // parents in a ring: broken where it is met again
      lane[row] = at < 0 ? next++ : at;
      order.push(row);
      const below = (children.get(row) ?? []).filter((one) => shown(one) && lane[one] < 0);
      if (!below.length) continue;
      const heir = below.reduce((best, one) => (size[one] > size[best] ? one : best));
      // The heir comes first, then the others: the last pushed is walked first.
      for (let place = below.length - 1; place >= 0; place -= 1) if (below[place] !== heir) stack.push([below[place], -1]);
      stack.push([heir, lane[row]]);
    }
  }
  // A ring of parents has no root: each gets a lane of its own.
  for (let row = 0; row < count; row += 1) if (shown(row) && lane[row] < 0) {
    lane[row] = next++;
    order.push(row);
  }
  return { lane, lanes: next, order };
}

function sizes(children, roots, count, shown) {
  const size = new Int32Array(count).fill(1);
  const walk = [];
  const seen = new Uint8Array(count);
  const stack = [...roots];
  while (stack.length) {
    const row = stack.pop();
    if (seen[row]) continue;
    seen[row] = 1;
    walk.push(row);
    for (const one of children.get(row) ?? []) if (shown(one)) stack.push(one);
  }
  for (let at = walk.length - 1; at >= 0; at -= 1) {
    for (const one of children.get(walk[at]) ?? []) if (shown(one) && one !== walk[at]) size[walk[at]] += size[one];
  }
  return size;
}

/** Ancestors and descendants of a row, itself too. */
export function family(table, row) {
  const within = new Uint8Array(table.count);
  if (row < 0) return within;
  table.line(row).forEach((one) => {
    within[one] = 1;
  });
  const stack = [row];
  const seen = new Set();
  while (stack.length) {
    const one = stack.pop();
    if (seen.has(one)) continue;
    seen.add(one);
    within[one] = 1;
    stack.push(...(table.children.get(one) ?? []));
  }
  return within;
}

/**
 * Begin and end of each row on the x axis.
 * @param {"time" | "generation"} x
 * @returns {{from: Float64Array, to: Float64Array, low: number, high: number}}
 */
export function spans(table, x, now) {
  const { count } = table;
  const from = new Float64Array(count);
  const to = new Float64Array(count);
  let [low, high] = [Infinity, -Infinity];
  for (let row = 0; row < count; row += 1) {
    if (x === "generation") {
      const at = table.number("generation", row);
      from[row] = Number.isNaN(at) ? 0 : at;
      to[row] = from[row] + 0.6;
    } else {
      const begun = table.number("started", row);
      const ended = table.number("ended", row);
      const asked = table.number("created", row);
      from[row] = Number.isNaN(begun) ? (Number.isNaN(asked) ? now : asked) : begun;
      to[row] = Number.isNaN(ended) ? Math.max(now, from[row]) : Math.max(ended, from[row]);
    }
    low = Math.min(low, from[row]);
    high = Math.max(high, to[row]);
  }
  return count ? { from, to, low, high: high > low ? high : low + 1 } : { from, to, low: 0, high: 1 };
}

/** Round steps of an axis: about `many` between two numbers. */
export function ticks(low, high, many, time = false) {
  const span = high - low;
  if (!(span > 0) || many < 1) return [];
  const rough = span / many;
  const steps = time ? [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000]
    : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
  const step = steps.find((one) => one >= rough) ?? rough;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high && found.length < 50; at += step) found.push(at);
  return found;
}
