/** Bars and links of a forest as pixels: 50,000 of them in some milliseconds, whatever the zoom. */

/** A colour of the style sheet as one number of an image. */
export function packed(text) {
  const hex = /^#([0-9a-f]{6})$/i.exec(text);
  if (hex) {
    const value = parseInt(hex[1], 16);
    return ((255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
  }
  const [r, g, b] = (text.match(/\d+/g) ?? [128, 128, 128]).map(Number);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/**
 * Paints a forest.
 * @param {Uint32Array} pixels of an image, all 0
 * @param {number} width @param {number} height in pixels of the image
 * @param {{x: number, y: number, sx: number, sy: number}} view  x and y at the corner, pixels a unit
 * @param {object} forest {lane, from, to, order, parents, colours, link}
 */
export function paint(pixels, width, height, view, { lane, from, to, order, parents, colours, link, dim }) {
  const thick = Math.max(1, Math.min(14, Math.round(view.sy * 0.62)));
  const top = Math.round((view.sy - thick) / 2);
  const px = (value) => Math.round((value - view.x) * view.sx);
  const py = (one) => Math.round((one - view.y) * view.sy);
  const inside = (one) => one >= 0 && one < height;
  // Links first: from the parent's end down to the child's lane, and on to the child's begin.
  const half = top + (thick >> 1);
  for (let at = 0; at < order.length; at += 1) {
    const row = order[at];
    const above = parents[row];
    if (above < 0 || lane[above] < 0) continue;
    const x = px(to[above]);
    const begin = px(from[row]);
    if (Math.max(x, begin) < 0 || Math.min(x, begin) >= width) continue;
    const [y0, y1] = [py(lane[above]) + half, py(lane[row]) + half];
    if (y0 === y1 && Math.abs(begin - x) < 2) continue;
    if (x >= 0 && x < width) {
      const low = Math.max(0, Math.min(y0, y1));
      const high = Math.min(height - 1, Math.max(y0, y1));
      // What is painted already ends a run: sisters share the way down.
      for (let y = high; y >= low; y -= 1) {
        const place = y * width + x;
        if (pixels[place] === link && y < high) break;
        pixels[place] = link;
      }
    }
    if (inside(y1)) {
      for (let one = Math.max(0, Math.min(x, begin)); one <= Math.min(width - 1, Math.max(x, begin)); one += 1) pixels[y1 * width + one] = link;
    }
  }
  for (let at = 0; at < order.length; at += 1) {
    const row = order[at];
    const y = py(lane[row]) + top;
    if (y + thick < 0 || y >= height) continue;
    const left = px(from[row]);
    const right = Math.max(left + 1, px(to[row]));
    if (right < 0 || left >= width) continue;
    const hue = dim && dim[row] ? dim[row] : colours[row];
    const x0 = Math.max(0, left);
    const x1 = Math.min(width, right);
    for (let line = Math.max(0, y); line < Math.min(height, y + thick); line += 1) pixels.fill(hue, line * width + x0, line * width + x1);
  }
}
