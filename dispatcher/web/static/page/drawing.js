/** A canvas to draw on, and what is drawn on it as rows of numbers from 0 (paper) to 1 (ink). */
import { html, useEffect, useRef } from "./ui.js";

const WIDEST = 280;

/**
 * Rows of numbers: the mean ink of each cell. Pure.
 * @param {Uint8ClampedArray} pixels red, green, blue, alpha of each pixel, black ink on white paper
 * @param {number} across pixels in a row
 * @param {number} width columns of the answer
 * @param {number} height rows of the answer
 * @param {number} finer pixels of a cell's side
 */
export function inked(pixels, across, width, height, finer) {
  const rows = [];
  for (let y = 0; y < height; y += 1) {
    const row = [];
    for (let x = 0; x < width; x += 1) {
      let light = 0;
      for (let dy = 0; dy < finer; dy += 1) {
        for (let dx = 0; dx < finer; dx += 1) light += pixels[4 * ((y * finer + dy) * across + x * finer + dx)];
      }
      row.push(Math.round(1000 * (1 - light / (255 * finer * finer))) / 1000);
    }
    rows.push(row);
  }
  return rows;
}

/** `onDrawn` gets the rows when the pen is lifted, and null when the paper is empty again. */
export function Drawing({ width, height, label, onDrawn }) {
  const finer = Math.max(1, Math.floor(WIDEST / Math.max(width, height)));
  const place = useRef(null);
  const pen = useRef(null);
  const clear = () => {
    const paper = place.current.getContext("2d", { willReadFrequently: true });
    paper.fillStyle = "#fff";
    paper.fillRect(0, 0, width * finer, height * finer);
    onDrawn(null);
  };
  useEffect(clear, [width, height]);
  const at = (event) => {
    const box = place.current.getBoundingClientRect();
    return [((event.clientX - box.left) * width * finer) / box.width, ((event.clientY - box.top) * height * finer) / box.height];
  };
  const line = (from, to) => {
    const paper = place.current.getContext("2d", { willReadFrequently: true });
    paper.strokeStyle = "#000";
    paper.lineWidth = Math.max(1, (Math.min(width, height) * finer) / 11);
    paper.lineCap = "round";
    paper.lineJoin = "round";
    paper.beginPath();
    paper.moveTo(...from);
    paper.lineTo(...to);
    paper.stroke();
  };
  const down = (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    place.current.setPointerCapture(event.pointerId);
    pen.current = at(event);
    line(pen.current, pen.current);
  };
  const move = (event) => {
    if (!pen.current) return;
    const next = at(event);
    line(pen.current, next);
    pen.current = next;
  };
  const up = () => {
    if (!pen.current) return;
    pen.current = null;
    const paper = place.current.getContext("2d", { willReadFrequently: true });
    const { data } = paper.getImageData(0, 0, width * finer, height * finer);
    onDrawn(inked(data, width * finer, width, height, finer));
  };
  return html`<div class="drawing"><canvas ref=${place} width=${width * finer} height=${height * finer} role="img" aria-label=${`${label}: a canvas to draw on`}
      onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${up}></canvas>
    <div><button type="button" class="small" onClick=${clear}>clear</button></div></div>`;
}
