/** All trials of an experiment as typed columns: what sorts, filters and draws 50,000 of them. Pure. */

const NUMERIC = new Set(["integer", "number", "time"]);

/** One column: numbers (NaN is nothing), texts, or choices by index. */
class Column {
  constructor({ name, kind, group, choices }, size) {
    Object.assign(this, { name, kind, group });
    this.numeric = NUMERIC.has(kind);
    this.choices = kind === "choice" ? [...(choices ?? [])] : null;
    this.codes = this.choices && new Map(this.choices.map((text, code) => [text, code]));
    this.exact = new Map(); // whole numbers with more digits than a double has
    this.data = this.#room(size);
  }

  #room(size) {
    if (this.numeric) return new Float64Array(size).fill(NaN);
    if (this.choices) return new Int32Array(size).fill(-1);
    return new Array(size).fill(null);
  }

  grow(size) {
    const before = this.data;
    this.data = this.#room(size);
    for (let row = 0; row < before.length; row += 1) this.data[row] = before[row];
  }

  set(row, value) {
    if (this.numeric) {
      this.exact.delete(row);
      if (typeof value === "bigint") this.exact.set(row, value);
      const plain = value === null || value === undefined ? NaN : Number(value);
      this.data[row] = typeof value === "string" && value === "" ? NaN : plain;
    } else if (this.choices) {
      if (typeof value === "number") this.data[row] = value < this.choices.length ? value : -1;
      else this.data[row] = value === null || value === undefined ? -1 : this.#code(String(value));
    } else this.data[row] = value ?? null;
  }

  #code(text) {
    if (!this.codes.has(text)) {
      this.codes.set(text, this.choices.length);
      this.choices.push(text);
    }
    return this.codes.get(text);
  }

  /** The value of a row: a number, a text, or null. */
  get(row) {
    if (this.numeric) {
      if (this.exact.size && this.exact.has(row)) return this.exact.get(row);
      const value = this.data[row];
      return Number.isNaN(value) ? null : value;
    }
    if (this.choices) return this.choices[this.data[row]] ?? null;
    return this.data[row] ?? null;
  }
}

export class Table {
  /** @param {{columns: {name: string, kind: string, group: string, values: any[]}[], count: number, cursor: string}} answer */
  constructor(answer) {
    this.cursor = answer.cursor;
    this.count = answer.count;
    this.leftOut = answer.left_out ?? 0;
    this.version = 0;
    this.columns = new Map();
    this.capacity = Math.max(16, answer.count);
    for (const told of answer.columns) {
      const column = new Column(told, this.capacity);
      for (let row = 0; row < answer.count; row += 1) column.set(row, told.values[row]);
      this.columns.set(told.name, column);
    }
    this.rows = new Map();
    const ids = this.columns.get("trial")?.data ?? [];
    for (let row = 0; row < this.count; row += 1) this.rows.set(ids[row], row);
    this.#memo = new Map();
  }

  #memo;

  /** Names of columns of a group. */
  names(group) {
    return [...this.columns.values()].filter((one) => one.group === group).map((one) => one.name);
  }

  get(name, row) {
    return this.columns.get(name)?.get(row) ?? null;
  }

  number(name, row) {
    const column = this.columns.get(name);
    return column?.numeric ? column.data[row] : NaN;
  }

  /** The row of a trial, or -1. */
  rowOf(trial) {
    return this.rows.get(trial) ?? -1;
  }

  /**
   * Takes changed trials in; what a row does not name stays. Columns that are new are added.
   * @returns {number[]} the rows that changed
   */
  patch(trials) {
    const changed = [];
    for (const told of trials) {
      let row = this.rowOf(told.trial);
      if (row < 0) row = this.#added(told.trial);
      for (const [name, value] of Object.entries(told)) this.#column(name, value)?.set(row, value);
      changed.push(row);
    }
    if (changed.length) {
      this.version += 1;
      this.#memo.clear();
    }
    return changed;
  }

  #added(trial) {
    if (this.count === this.capacity) {
      this.capacity *= 2;
      for (const column of this.columns.values()) column.grow(this.capacity);
    }
    this.rows.set(trial, this.count);
    this.count += 1;
    return this.count - 1;
  }

  #column(name, value) {
    const known = this.columns.get(name);
    if (known || value === null || value === undefined) return known;
    const kind = typeof value === "number" ? "number" : "text";
    const column = new Column({ name, kind, group: "parameter" }, this.capacity);
    this.columns.set(name, column);
    return column;
  }

  /** Remembers what is made of the table until it changes. */
  once(key, make) {
    if (!this.#memo.has(key)) this.#memo.set(key, make(this));
    return this.#memo.get(key);
  }

  /** Rows of children by the parent's row. */
  get children() {
    return this.once("children", () => {
      const found = new Map();
      for (let row = 0; row < this.count; row += 1) {
        const above = this.parentRow(row);
        if (above >= 0) found.has(above) ? found.get(above).push(row) : found.set(above, [row]);
      }
      return found;
    });
  }

  parentRow(row) {
    const parent = this.number("parent", row);
    return Number.isNaN(parent) ? -1 : this.rowOf(parent);
  }

  /** Numbers of a column that is made of others: `gain`, `took`, or a column itself. */
  numbers(name, mode = "maximize") {
    if (name === "gain") {
      const sign = mode === "minimize" ? -1 : 1;
      return this.once(`gain ${mode}`, () => this.#made((row) => {
        const above = this.parentRow(row);
        return above < 0 ? NaN : sign * (this.number("value", row) - this.number("value", above));
      }));
    }
    if (name === "took") {
      return this.once("took", () => this.#made((row) => this.number("ended", row) - this.number("started", row)));
    }
    const column = this.columns.get(name);
    return column?.numeric ? column.data : null;
  }

  #made(of) {
    const made = new Float64Array(this.capacity).fill(NaN);
    for (let row = 0; row < this.count; row += 1) made[row] = of(row);
    return made;
  }

  /** All rows, or those of a condition, in the order of a column; what has no value comes last. */
  order(name, descending, rows = null, mode = "maximize") {
    const sorted = rows ? Uint32Array.from(rows) : Uint32Array.from({ length: this.count }, (_, row) => row);
    const numbers = this.numbers(name, mode);
    const sign = descending ? -1 : 1;
    if (numbers) {
      return sorted.sort((a, b) => {
        const [x, y] = [numbers[a], numbers[b]];
        if (x === y) return a - b;
        if (Number.isNaN(x)) return Number.isNaN(y) ? a - b : 1;
        return Number.isNaN(y) ? -1 : sign * (x - y);
      });
    }
    const column = this.columns.get(name);
    if (!column) return sorted;
    const rank = column.choices ? ranks(column.choices) : null;
    return sorted.sort((a, b) => {
      const x = rank ? rank[column.data[a]] ?? null : column.data[a];
      const y = rank ? rank[column.data[b]] ?? null : column.data[b];
      if (x === y) return a - b;
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return x < y ? -sign : sign;
    });
  }

  /** The row of the best value, or -1. */
  best(mode) {
    return this.once(`best ${mode}`, () => {
      const values = this.columns.get("value")?.data ?? [];
      let found = -1;
      for (let row = 0; row < this.count; row += 1) {
        if (Number.isNaN(values[row])) continue;
        if (found < 0 || (mode === "minimize" ? values[row] < values[found] : values[row] > values[found])) found = row;
      }
      return found;
    });
  }

  /** From a root to a row, by parents. */
  line(row) {
    const found = [];
    const seen = new Set();
    for (let at = row; at >= 0 && !seen.has(at); at = this.parentRow(at)) {
      seen.add(at);
      found.push(at);
    }
    return found.reverse();
  }

  /** The share of values that a row's is better than, from 0 to 1; NaN without a value. */
  ranks(mode) {
    return this.once(`ranks ${mode}`, () => {
      const made = new Float32Array(this.capacity).fill(NaN);
      const order = this.order("value", mode === "minimize").filter((row) => !Number.isNaN(this.number("value", row)));
      // Equals share the rank of the best among them.
      for (let place = order.length - 1, at = place; place >= 0; place -= 1) {
        if (this.number("value", order[place]) !== this.number("value", order[at])) at = place;
        made[order[place]] = order.length > 1 ? at / (order.length - 1) : 1;
      }
      return made;
    });
  }

  /** How many rows have each text of a column of choices or texts. */
  tally(name) {
    return this.once(`tally ${name}`, () => {
      const found = new Map();
      for (let row = 0; row < this.count; row += 1) {
        const text = this.get(name, row);
        if (text !== null) found.set(text, (found.get(text) ?? 0) + 1);
      }
      return found;
    });
  }
}

function ranks(choices) {
  const order = [...choices.keys()].sort((a, b) => (choices[a] < choices[b] ? -1 : 1));
  const made = [];
  order.forEach((code, place) => {
    made[code] = place;
  });
  return made;
}
