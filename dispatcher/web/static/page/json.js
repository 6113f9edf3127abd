/** JSON whose whole numbers stay what they are, however many digits they have. Pure. */

const LONG = /[:,[\s]-?\d{16,}\s*[,\]}\s]/;

/** Parses a text; whole numbers beyond 2^53 become BigInt where the browser can tell. */
export function parse(text) {
  return LONG.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_key, value, context) {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value;
}

/** A value as JSON text, with BigInt as numbers. */
export function write(value, indent = 0, level = 0) {
  if (typeof value === "bigint") return value.toString();
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const gap = indent ? `\n${" ".repeat(indent * (level + 1))}` : "";
  const end = indent ? `\n${" ".repeat(indent * level)}` : "";
  if (Array.isArray(value)) {
    if (!value.length) return "[]";
    if (value.every((one) => one === null || typeof one !== "object")) {
      return `[${value.map((one) => write(one)).join(", ")}]`;
    }
    return `[${gap}${value.map((one) => write(one, indent, level + 1)).join(`,${gap}`)}${end}]`;
  }
  const entries = Object.entries(value);
  if (!entries.length) return "{}";
  const colon = indent ? ": " : ":";
  const inner = entries.map(([key, one]) => `${JSON.stringify(key)}${colon}${write(one, indent, level + 1)}`);
  return `{${gap}${inner.join(`,${gap}`)}${end}}`;
}
