/** What the table itself shows of the promises: counts and margins, for the receipt. Pure. */

/** Each child began after its parent's end: pairs, those that did not, and the shortest margin. */
export function inheritance(table) {
  let [pairs, early, shortest, nearest] = [0, [], Infinity, -1];
  for (let row = 0; row < table.count; row += 1) {
    const above = table.parentRow(row);
    const begun = table.number("started", row);
    if (above < 0 || Number.isNaN(begun)) continue;
    const ended = table.number("ended", above);
    pairs += 1;
    const margin = begun - ended;
    if (Number.isNaN(ended) || margin < 0) early.push(table.number("trial", row));
    else if (margin < shortest) [shortest, nearest] = [margin, table.number("trial", row)];
  }
  return { pairs, early, shortest: Number.isFinite(shortest) ? shortest : null, nearest };
}

/** No trial descends from itself. */
export function rings(table) {
  const done = new Uint8Array(table.count);
  const found = [];
  for (let row = 0; row < table.count; row += 1) {
    const walk = [];
    let at = row;
    while (at >= 0 && done[at] === 0) {
      done[at] = 1;
      walk.push(at);
      at = table.parentRow(at);
    }
    if (at >= 0 && done[at] === 1) found.push(table.number("trial", at));
    walk.forEach((one) => {
      done[one] = 2;
    });
  }
  return found;
}

/** Every trial that is over has an outcome, and every one that succeeded a value. */
export function endings(table) {
  let over = 0;
  const without = [];
  const silent = [];
  for (let row = 0; row < table.count; row += 1) {
    if (table.get("state", row) !== "ended") continue;
    over += 1;
    const outcome = table.get("outcome", row);
    if (outcome === null) without.push(table.number("trial", row));
    if (outcome === "succeeded" && Number.isNaN(table.number("value", row))) silent.push(table.number("trial", row));
  }
  return { over, without, silent };
}
