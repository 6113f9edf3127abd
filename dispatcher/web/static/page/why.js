/** A sentence of the head with links: each trial and each host that it names. */
import { html } from "./ui.js";
import { trialLink, link } from "./route.js";
import { visible } from "./safe.js";

const TRIALS = /\b(trials?|parents?|requests?|waits? for) (\d+(?:(?:, | and |, and )\d+)*)(?!\d|\.\d|\s?(?:s|ms|m|h|d|%)\b)/g;

/** The pieces of a sentence: texts, numbers of trials, and names of workers. Pure. */
export function pieces(text, workers = []) {
  const named = workers.filter((name) => text.includes(name)).sort((a, b) => b.length - a.length);
  return named.length ? withHosts(numbered(text), named) : numbered(text);
}

const LETTER = /[\w/.-]/;

/** Names that stand by themselves: gpu1 is not in gpu12. */
function withHosts(found, names) {
  return found.flatMap((piece) => {
    if (piece.trial !== undefined) return [piece];
    const parts = [];
    let begun = 0;
    for (let at = 0; at < piece.text.length; at += 1) {
      if (at && LETTER.test(piece.text[at - 1])) continue;
      const name = names.find((one) => piece.text.startsWith(one, at) && !LETTER.test((piece.text[at + one.length] ?? " ").replace(".", piece.text[at + one.length + 1]?.trim() ? "." : " ")));
      if (!name) continue;
      if (at > begun) parts.push({ text: piece.text.slice(begun, at) });
      parts.push({ host: name, text: name });
      begun = at + name.length;
      at = begun - 1;
    }
    return begun < piece.text.length ? [...parts, { text: piece.text.slice(begun) }] : parts;
  });
}

function numbered(text) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(TRIALS)) {
    const begin = match.index + match[1].length + 1;
    found.push({ text: text.slice(at, begin) });
    let rest = match[2];
    let number;
    while ((number = /^(\D*)(\d+)/.exec(rest))) {
      if (number[1]) found.push({ text: number[1] });
      found.push({ trial: Number(number[2]), text: number[2] });
      rest = rest.slice(number[0].length);
    }
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ text: text.slice(at) });
  return found;
}

const begun = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A cause by its name in the head's code, NO_FREE_GPU, or in words already. Pure. */
export const causeInWords = (cause) => (/^[A-Z_]+$/.test(cause) ? cause.replace(/_/g, " ").toLowerCase().replace(/\bgpu\b/, "GPU") : cause);

export const WhyText = ({ text, experiment, workers, bare }) => html`<bdi>${pieces(begun(visible(text).slice(0, 4000)), workers).map((piece) =>
  piece.trial !== undefined ? html`<a href=${trialLink(experiment, piece.trial)}>${piece.text}</a>`
    : piece.host ? html`<a href=${link(experiment, "hosts")}>${piece.text}</a>` : piece.text)}</bdi>${!bare && html` <a class="more" href=${link(experiment, "waits")}>waits</a>`}`;
