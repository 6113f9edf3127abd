/** Busy slots as numbers: what one pixel shows, and what the shares are in words. Pure. */
import { causeInWords } from "./why.js";
import { number } from "./format.js";

/** Looks of causes by how much they cost: a colour and a pattern, so that no hue is needed. Pure. */
const LOOKS = [["line-2", "up"], ["line-4", "down"], ["line-5", "dots"], ["line-7", "bars"]];
export const OTHERS = ["quiet", "plain"];

export const looks = (idle) => new Map(idle.map((one, at) => [one.cause, LOOKS[at] ?? OTHERS]));

/**
 * Means of what is shown in one pixel each. Pure.
 * @returns {{busy: number[], slots: number[]}} one value a pixel
 */
export function pixels(data, width) {
  const many = data.busy.length;
  const busy = [];
  const slots = [];
  for (let x = 0; x < width; x += 1) {
    const from = Math.floor((x * many) / width);
    const to = Math.max(from + 1, Math.floor(((x + 1) * many) / width));
    let [a, b] = [0, 0];
    for (let at = from; at < to; at += 1) {
      a += data.busy[at];
      b += data.slots[at];
    }
    busy.push(a / (to - from));
    slots.push(b / (to - from));
  }
  return { busy, slots };
}

/** "97 % busy · idle because: lookahead full 2.1 %". Pure. */
export const shares = (data) => (data.busy_share === null ? "" : [
  `${number(100 * data.busy_share, 3)} % busy`,
  ...(data.idle.length ? [`idle because: ${data.idle.slice(0, 4).map((one) => `${causeInWords(one.cause)} ${number(100 * one.share, 2)} %`).join(", ")}`] : []),
].join(" · "));
