/** Texts of strangers, made harmless to read: what cannot be seen is shown by its name. Pure. */

// Marks that turn or hide text: bidirectional ones, zero-width ones, separators of lines.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A text with what cannot be seen shown as ⟨U+202E⟩, escapes as ⟨ESC⟩. */
export function visible(text) {
  return text.replace(HIDDEN, shown).replace(LONE, "\ufffd");
}

function shown(mark) {
  const code = mark.charCodeAt(0);
  if (code === 0x1b) return "⟨ESC⟩";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** A text in one line, cut; the cut is told by an ellipsis. */
export function brief(text, most = 120) {
  const flat = visible(text.length > most * 4 ? text.slice(0, most * 4) : text).replace(/\s+/g, " ");
  return flat.length > most || text.length > most * 4 ? `${flat.slice(0, most)}…` : flat;
}

const SGR = /\u001b\[([\d;]*)m|\u001b\[[\d;?]*[A-Za-ln-z]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/**
 * A line of a log as pieces, each with classes for its colours; other escapes are left out.
 * @param {string} line
 * @param {string} before classes that hold from the line before
 * @returns {{pieces: {text: string, style: string}[], after: string}}
 */
export function coloured(line, before = "") {
  const pieces = [];
  let style = before;
  let at = 0;
  for (const found of line.matchAll(SGR)) {
    if (found.index > at) pieces.push({ text: visible(line.slice(at, found.index)), style });
    if (found[1] !== undefined) style = restyled(style, found[1]);
    at = found.index + found[0].length;
  }
  if (at < line.length) pieces.push({ text: visible(line.slice(at)), style });
  return { pieces, after: style };
}

function restyled(style, codes) {
  let set = new Set(style.split(" ").filter(Boolean));
  for (const code of (codes || "0").split(";").map(Number)) {
    if (code === 0) set = new Set();
    else if (code === 1) set.add("ansi-bold");
    else if (code === 22) set.delete("ansi-bold");
    else if (code === 39) set = new Set([...set].filter((one) => one === "ansi-bold"));
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
      set = new Set([...set].filter((one) => one === "ansi-bold"));
      set.add(`ansi-${NAMES[code % 10]}`);
    } else if (code === 38 || code === 48) break; // with numbers of their own
  }
  return [...set].join(" ");
}
