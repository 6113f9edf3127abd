/** A list of which only what one sees is in the page: 50,000 rows cost as much as 50. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";

const MORE = 4; // rows above and below what is seen; none while somebody scrolls by screens
const CALM_MS = 150; // after a jump, until rows are drawn with all that they have
// Browsers hold no element higher than about 16 million pixels: the scroll is scaled beyond this.
const TALLEST = 8_000_000;

/**
 * @param {{count: number, height: number, row: (index: number, brisk: boolean) => any, label: string, head?: any,
 *   onKey?: (event: KeyboardEvent, move: (index: number) => void) => void, at?: number, width?: number}} props
 */
export function Virtual({ count, height, row, label, head, onKey, at, columns, className = "" }) {
  const frame = useRef(null);
  const [seen, setSeen] = useState({ top: 0, size: 600, brisk: false });
  const full = count * height;
  const tall = Math.min(full, TALLEST);
  const scale = full > tall ? (full - seen.size) / Math.max(1, tall - seen.size) : 1;

  useEffect(() => {
    const element = frame.current;
    let calm = 0;
    const read = () => setSeen((before) => {
      const now = { top: element.scrollTop, size: element.clientHeight, brisk: before.brisk };
      if (before.top === now.top && before.size === now.size) return before;
      now.brisk ||= Math.abs(now.top - before.top) > now.size / 2;
      clearTimeout(calm);
      if (now.brisk) calm = setTimeout(() => setSeen((last) => ({ ...last, brisk: false })), CALM_MS);
      return now;
    });
    const watch = new ResizeObserver(() => requestAnimationFrame(read)); // what it draws may change the size
    watch.observe(element);
    element.addEventListener("scroll", read, { passive: true });
    read();
    return () => {
      clearTimeout(calm);
      watch.disconnect();
      element.removeEventListener("scroll", read);
    };
  }, []);

  const show = (index) => {
    const element = frame.current;
    const headHeight = element.querySelector(".vhead")?.offsetHeight ?? 0;
    const top = (index * height) / scale;
    if (top < element.scrollTop) element.scrollTop = top;
    const bottom = top + height - (element.clientHeight - headHeight);
    if (bottom > element.scrollTop) element.scrollTop = bottom;
  };
  useLayoutEffect(() => {
    if (at !== undefined && at >= 0) show(at);
  }, [at]);

  const more = seen.brisk ? 0 : MORE;
  const begin = Math.max(0, Math.floor((seen.top * scale) / height) - more);
  const end = Math.min(count, Math.ceil((seen.top * scale + seen.size) / height) + more);
  const rows = [];
  for (let index = begin; index < end; index += 1) rows.push(row(index, seen.brisk));
  // Where the first of them is, in the pixels of a scroll that may be scaled.
  const offset = scale === 1 ? begin * height : seen.top + (begin * height - seen.top * scale);
  return html`
    <div class=${`virtual ${className}`} ref=${frame} role="grid" aria-label=${label} aria-rowcount=${count + 1}
      aria-colcount=${columns} tabindex="0" onKeyDown=${onKey}>
      ${head}
      <div class="vbody" role="rowgroup" style=${{ height: `${tall}px` }}>
        <div class="vrows" role="presentation" style=${{ transform: `translateY(${Math.max(0, offset)}px)` }}>${rows}</div>
      </div>
    </div>`;
}
