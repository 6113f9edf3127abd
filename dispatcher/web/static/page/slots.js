/** How many slots were busy, second by second, and what kept the others empty. */
import { html, useMemo } from "./ui.js";
import { choose } from "./navigation.js";
import { colour } from "./colours.js";
import { Picture } from "./picture.js";
import { Rows } from "./plots.js";
import { OTHERS, looks, pixels, shares } from "./slot_shares.js";
import { WhyText, causeInWords } from "./why.js";
import { Choose, Empty } from "./widgets.js";
import { duration, number, time } from "./format.js";

const HEIGHT = 150;
const STRIP = 22;
const ROWS = 100;
const BUSY = "ALL_SLOTS_BUSY";
const SPANS = [["600", "10 minutes"], ["3600", "an hour"], ["21600", "6 hours"], ["86400", "a day"], ["604800", "a week"]];

export function Slots({ data, experiment, query }) {
  const looked = useMemo(() => looks(data.idle), [data]);
  const draw = useMemo(() => (pen, width) => drawn(pen, data, looked, width), [data, looked]);
  const others = [...new Set(data.reasons.map((one) => one.cause))].filter((cause) => cause !== BUSY);
  const newest = [...data.reasons].reverse().slice(0, ROWS);
  return html`${query && html`<div class="bar small"><${Choose} label="the last" value=${query.last ?? "3600"} options=${SPANS} onChange=${(last) => choose({ last: last === "3600" ? null : last })} /></div>`}
    ${data.busy.length === 0 ? html`<${Empty}>Nothing is known of slots.<//>` : html`
    <p>${shares(data) || "The search was over all the while."}</p>
    <p class="legend"><span><span class="swatch fill-running"></span> busy</span>${others.map((cause) => html`<span><span class=${`swatch look-${looked.get(cause)?.[1] ?? "plain"}`} style=${{ color: `var(--${(looked.get(cause) ?? OTHERS)[0]})` }}></span> ${causeInWords(cause)}</span>`)}</p>
    <${Picture} draw=${draw} data=${data} height=${HEIGHT + STRIP + 24} label=${`busy slots from ${time(data.begin)} to ${time(data.until)}: ${shares(data)}; what was in the way is in the table below`} />
    <${Rows} title="what was in the way" of=${data.reasons.length} head=${["begins", "lasts", "cause", "in the words of the head"]} rows=${newest.map((one) => [time(one.begin), duration(one.end - one.begin), causeInWords(one.cause), one.cause === BUSY ? "" : html`<${WhyText} text=${one.text} experiment=${experiment} bare />`])} />`}`;
}

function drawn(pen, data, looked, width) {
  const left = 40;
  const room = Math.max(1, Math.floor(width - left - 8));
  const { busy, slots } = pixels(data, room);
  const most = Math.max(1, ...slots);
  const y = (many) => HEIGHT - (many / most) * (HEIGHT - 12);
  pen.fillStyle = colour("state-running");
  busy.forEach((many, x) => pen.fillRect(left + x, y(many), 1, HEIGHT - y(many)));
  pen.strokeStyle = colour("text");
  pen.beginPath();
  slots.forEach((many, x) => pen.lineTo(left + x, y(many)));
  pen.stroke();
  pen.fillStyle = colour("quiet");
  pen.textAlign = "right";
  for (const many of [0, most]) pen.fillText(number(many, 4), left - 5, y(many) + 4);
  const span = data.until - data.begin || 1;
  const x = (moment) => left + ((moment - data.begin) / span) * room;
  for (const one of data.reasons) {
    if (one.cause === BUSY) continue;
    const [name, pattern] = looked.get(one.cause) ?? OTHERS;
    hatched(pen, x(one.begin), HEIGHT + 3, Math.max(1, x(one.end) - x(one.begin)), STRIP - 6, colour(name), pattern);
  }
  pen.fillStyle = colour("quiet");
  for (let at = 0; at <= 4; at += 1) {
    pen.textAlign = at === 0 ? "left" : at === 4 ? "right" : "center";
    pen.fillText(time(data.begin + (span * at) / 4), left + (room * at) / 4, HEIGHT + STRIP + 16);
  }
}

/** A box with a pattern. */
function hatched(pen, x, y, wide, high, tint, pattern) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, wide, high);
  pen.clip();
  pen.fillStyle = pen.strokeStyle = tint;
  pen.globalAlpha = pattern === "plain" ? 0.5 : 0.35;
  pen.fillRect(x, y, wide, high);
  pen.globalAlpha = 1;
  pen.lineWidth = 1.5;
  pen.beginPath();
  const first = Math.floor(x / 6) * 6 - high;
  for (let at = first; at < x + wide + high; at += 6) {
    if (pattern === "up") line(pen, at, y + high, at + high, y);
    else if (pattern === "down") line(pen, at, y, at + high, y + high);
    else if (pattern === "bars") line(pen, at, y, at, y + high);
    else if (pattern === "dots") for (let up = y + 3; up < y + high; up += 6) pen.rect(at, up, 1.5, 1.5);
  }
  pen.stroke();
  pen.restore();
}

function line(pen, x0, y0, x1, y1) {
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
}
