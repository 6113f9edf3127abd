/** A sentence of the head with links: each trial and host that it names. */
import { html } from "./ui.js";
import { trialLink, link } from "./route.js";
import { visible } from "./safe.js";

const TRIALS = /\b(trials?|parents?|requests?|waits? for) (\d+(?:(?:, | and |, and )\d+)*)(?!\d|\.\d|\s?(?:s|ms|m|h|d|%)\b)/g;

/** The pieces of a sentence: texts, and numbers of trials. Pure. */
export function pieces(text) {
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

export const WhyText = ({ text, experiment }) => html`<bdi>${pieces(begun(visible(text).slice(0, 4000))).map((piece) =>
  piece.trial === undefined ? piece.text
    : html`<a href=${trialLink(experiment, piece.trial)}>${piece.text}</a>`)}</bdi>${" "}<a class="more" href=${link(experiment, "waits")}>waits</a>`;
