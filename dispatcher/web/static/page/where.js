/**
 * Conditions such as `lr<0.01 and optimizer=adam`, over the columns that the page has. The grammar is
 * that of `dispatcher/queries/where.py`; what a condition asks of things that no column has is left to
 * the server (`local` is false then). Pure.
 */

const TOKEN = /(?<space>\s+)|(?<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w./:@%[-]))|(?<word>[\w./:@%[\u0080-\uffff][\w./:@%[\]\u0080-\uffff-]*)|(?<quoted>'[^']*'|"[^"]*")|(?<literal>`[^`]+`)|(?<operator>==|!=|<=|>=|[=<>~])|(?<mark>[(),])/uy;

/** Names of conditions that are called otherwise in the table. */
const COLUMNS = {
  id: "trial", trial: "trial", state: "state", outcome: "outcome", value: "value", result: "value", parent: "parent",
  worker: "worker", started_at: "started", ended_at: "ended", starred: "starred",
};
/** Stands for each tag of a trial: a comparison holds if it does for one of them. */
const TAG = "tag";
/** Names that are a trial's own, of which the table has no column. */
const ELSEWHERE = new Set([
  "success", "by_hand", "attempt", "failures", "losses", "save_path", "restore_path",
  "weights_digest", "end_reason", "exit_code", "signal", "error", "tuner_error", "since", "asked_at",
  "proposed_at", "cpu_s", "wall_s", "took", "weights_bytes",
]);
const MOST_LEVELS = 20;

/** A condition that cannot be read; `column` counts from 1. */
export class WhereError extends Error {
  constructor(message, column, hint = "write it as in: lr<0.01 and optimizer=adam and outcome!=failed") {
    super(message);
    Object.assign(this, { column, hint });
  }
}

/**
 * Reads a condition.
 * @param {string} text
 * @param {import("./table.js").Table} table
 * @returns {{test: (row: number) => boolean, local: boolean}}
 */
export function condition(text, table) {
  if (text.length > 2000) throw new WhereError("the condition is too long", 2001, "ask for fewer things at once");
  const parser = new Parser([...tokens(text)], table);
  return parser.whole();
}

function* tokens(text) {
  TOKEN.lastIndex = 0;
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    if (!found) {
      const mark = text[at];
      if ("'\"`".includes(mark)) throw new WhereError(`the ${mark} that begins here has no end`, at + 1);
      throw new WhereError(`'${mark}' means nothing here`, at + 1, "&|!".includes(mark) ? "write and, or, not" : undefined);
    }
    const [kind] = Object.entries(found.groups).find(([, one]) => one !== undefined);
    if (kind !== "space") yield { kind, text: found[0], column: at + 1 };
    at = TOKEN.lastIndex;
  }
  yield { kind: "end", text: "", column: text.length + 1 };
}

class Parser {
  constructor(all, table) {
    Object.assign(this, { all, table, at: 0, levels: 0, comparisons: 0, local: true });
  }

  get peek() {
    return this.all[this.at];
  }

  next() {
    const token = this.peek;
    if (token.kind !== "end") this.at += 1;
    return token;
  }

  takes(text) {
    const token = this.peek;
    if (!["word", "mark"].includes(token.kind) || token.text.toLowerCase() !== text) return false;
    this.at += 1;
    return true;
  }

  whole() {
    if (this.peek.kind === "end") return { test: () => true, local: true };
    const test = this.either();
    const rest = this.next();
    if (rest.kind !== "end") {
      if (rest.text === ")") throw new WhereError("this bracket closes nothing", rest.column);
      throw new WhereError(`'and' or 'or' is missing before '${rest.text}'`, rest.column, "a value of several words stands in quotes: outcome='timed out'");
    }
    return { test, local: this.local };
  }

  either() {
    const parts = [this.both()];
    while (this.takes("or")) parts.push(this.both());
    return parts.length === 1 ? parts[0] : (row) => parts.some((part) => part(row));
  }

  both() {
    const parts = [this.factor()];
    while (this.takes("and")) parts.push(this.factor());
    return parts.length === 1 ? parts[0] : (row) => parts.every((part) => part(row));
  }

  factor() {
    const begins = this.peek;
    const word = begins.kind === "quoted" ? "" : begins.text.toLowerCase();
    if (word !== "not" && word !== "(") return this.comparison();
    this.next();
    this.levels += 1;
    if (this.levels > MOST_LEVELS) throw new WhereError(`nested more than ${MOST_LEVELS} levels deep`, begins.column, "write it flatter");
    let inner;
    if (word === "(") {
      inner = this.either();
      if (!this.takes(")")) throw new WhereError("the bracket that opens here is not closed", begins.column);
    } else {
      const inside = this.factor();
      inner = (row) => !inside(row);
    }
    this.levels -= 1;
    return inner;
  }

  comparison() {
    const token = this.next();
    this.comparisons += 1;
    if (this.comparisons > 100) throw new WhereError("more than 100 comparisons", token.column, "ask for fewer things at once");
    const subject = this.subject(token);
    const operator = this.next();
    if (operator.kind === "word" && operator.text.toLowerCase() === "in") return this.among(subject);
    if (operator.kind !== "operator") throw new WhereError(`a comparison is missing after '${token.text}'`, operator.column, "one of = != < <= > >= ~ in");
    return this.compared(subject, operator, this.value(operator.text));
  }

  among(subject) {
    const opens = this.next();
    if (opens.text !== "(") throw new WhereError("'in' is followed by values in brackets", opens.column, "as in: depth in (2, 4, 8)");
    const parts = [];
    do {
      parts.push(this.compared(subject, { text: "=", column: opens.column }, this.value(parts.length ? "," : "(")));
    } while (this.takes(","));
    if (!this.takes(")")) throw new WhereError("the bracket that opens here is not closed", opens.column);
    return (row) => parts.some((part) => part(row));
  }

  value(after) {
    const token = this.next();
    if (token.kind === "quoted") return token.text.slice(1, -1);
    if (token.kind === "number") {
      const value = Number(token.text);
      if (!Number.isFinite(value)) throw new WhereError("this number is too large", token.column);
      if (!Number.isSafeInteger(value) && /^[+-]?\d+$/.test(token.text)) this.local = false;
      return value;
    }
    if (token.kind !== "word" || ["and", "or", "not", "in"].includes(token.text.toLowerCase())) {
      throw new WhereError(`a value is missing after '${after}'`, token.column);
    }
    if (token.text === "null") return null;
    if (token.text === "true" || token.text === "false") return token.text === "true" ? 1 : 0;
    return token.text;
  }

  subject(token) {
    if (token.kind === "literal") return this.parameter(token.text.slice(1, -1));
    if (token.kind !== "word" || ["and", "or", "not", "in"].includes(token.text.toLowerCase())) {
      throw new WhereError(`a name is missing ${token.kind === "end" ? "at the end" : `before '${token.text}'`}`, token.column);
    }
    if (token.text === TAG) return this.table.columns.has("tags") ? TAG : this.away();
    if (COLUMNS[token.text]) return this.table.columns.get(COLUMNS[token.text]) ?? this.away();
    if (ELSEWHERE.has(token.text)) return this.away();
    return this.parameter(token.text.replace(/^parameters\./, ""));
  }

  parameter(name) {
    const column = this.table.columns.get(name);
    return column?.group === "parameter" ? column : this.away();
  }

  away() {
    this.local = false;
    return null;
  }

  compared(column, operator, value) {
    const sign = operator.text;
    if (value === null && !["=", "==", "!="].includes(sign)) {
      throw new WhereError(`null is compared by = and != only, not by '${sign}'`, operator.column);
    }
    if (column === null) return () => false;
    if (column === TAG) return someTag(this.table.columns.get("tags"), sign, value);
    const texts = !column.numeric;
    // What such a column holds as text may be a number in the parameters: the server knows.
    if (texts && column.group === "parameter" && typeof value === "number") this.away();
    if (!texts && column.exact.size) this.away();
    const get = (row) => column.get(row);
    if (sign === "=" || sign === "==") return (row) => get(row) === value;
    if (sign === "!=") return (row) => get(row) !== value;
    if (sign === "~") return (row) => typeof get(row) === "string" && get(row).includes(String(value));
    if (typeof value === "string" ? !texts : texts) return () => false;
    const holds = { "<": (a) => a < value, "<=": (a) => a <= value, ">": (a) => a > value, ">=": (a) => a >= value }[sign];
    return (row) => {
      const one = get(row);
      return one !== null && holds(one);
    };
  }
}

/** Whether one tag of a row is, or contains, a text; `tag=null`: there is none. */
function someTag(column, sign, value) {
  if (sign === "!=") {
    const holds = someTag(column, "=", value);
    return (row) => !holds(row);
  }
  const tags = (row) => (column.get(row) ?? "").split(" ").filter(Boolean);
  if (value === null) return (row) => tags(row).length === 0;
  if (sign === "~") return (row) => tags(row).some((tag) => tag.includes(String(value)));
  if (typeof value !== "string") return () => false;
  const one = { "<": (tag) => tag < value, "<=": (tag) => tag <= value, ">": (tag) => tag > value, ">=": (tag) => tag >= value }[sign] ?? ((tag) => tag === value);
  return (row) => tags(row).some(one);
}
