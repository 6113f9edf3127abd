/** What the overview draws, made of the table. Pure. */

/**
 * Every result in the order of its end, with the best so far.
 * @param {import("./table.js").Table} table
 * @param {"time" | "order"} x
 * @returns {{data: [number[], number[], number[]], rows: number[]}} for uPlot, and the row of each point
 */
export function progress(table, mode, x) {
  const ended = table.columns.get("ended")?.data ?? [];
  const values = table.columns.get("value")?.data ?? [];
  const rows = [];
  for (let row = 0; row < table.count; row += 1) {
    if (Number.isFinite(values[row]) && !Number.isNaN(ended[row])) rows.push(row);
  }
  rows.sort((a, b) => ended[a] - ended[b] || a - b);
  let best = NaN;
  const line = rows.map((row) => {
    const value = values[row];
    if (Number.isNaN(best) || (mode === "minimize" ? value < best : value > best)) best = value;
    return best;
  });
  const xs = x === "order" ? rows.map((_, place) => place + 1) : rows.map((row) => ended[row]);
  return { data: [xs, rows.map((row) => values[row]), line], rows };
}

/** A range of values without the worst few, which would press all others together. */
export function range(values, best, mode) {
  const sorted = Float64Array.from(values.filter(Number.isFinite)).sort();
  if (!sorted.length) return null;
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
  const low = mode === "minimize" ? sorted[0] : at(0.01);
  const high = mode === "minimize" ? at(0.99) : sorted.at(-1);
  const margin = (high - low || Math.abs(high) || 1) * 0.05;
  return [low - margin, high + margin];
}

/**
 * Which changes made children better: the median gain by parameter that differs from the parent's.
 * @returns {{name: string, direction: string, gain: number, count: number}[]} most telling first
 */
export function gains(table, mode, most = 8) {
  const gain = table.numbers("gain", mode);
  const columns = table.names("parameter").map((name) => table.columns.get(name));
  const found = new Map();
  for (let row = 0; row < table.count; row += 1) {
    if (Number.isNaN(gain[row])) continue;
    const above = table.parentRow(row);
    for (const column of columns) {
      const [before, now] = [column.get(above), column.get(row)];
      if (before === now || before === null || now === null) continue;
      const direction = column.numeric ? (now > before ? "↑" : "↓") : `→ ${String(now).slice(0, 40)}`;
      const key = `${column.name} ${direction}`;
      const known = found.get(key);
      if (known) known.gains.push(gain[row]);
      else if (found.size < 2000) found.set(key, { name: column.name, direction, gains: [gain[row]] });
    }
  }
  return [...found.values()]
    .filter((one) => one.gains.length >= 3)
    .map(({ name, direction, gains: all }) => {
      all.sort((a, b) => a - b);
      return { name, direction, count: all.length, gain: all[Math.floor(all.length / 2)] };
    })
    .sort((a, b) => b.gain - a.gain)
    .filter((_, place, all) => place < most / 2 || place >= all.length - most / 2);
}

/** Columns that tell trials apart: parameters with more than one value, the widest spread first. */
export function telling(table, most = 10) {
  return table.names("parameter").filter((name) => {
    const column = table.columns.get(name);
    let first = null;
    for (let row = 0; row < table.count; row += 1) {
      const value = column.get(row);
      if (value === null) continue;
      if (first === null) first = value;
      else if (value !== first) return true;
    }
    return false;
  }).slice(0, most);
}
