/** uPlot in the page's colours: lines and points over numbers or times. */
import uPlot from "../vendor/uplot.js";
import { html, useEffect, useRef } from "./ui.js";
import { colour, onTheme } from "./colours.js";
import { useWidth } from "./widgets.js";
import { number, time as moment } from "./format.js";

/** Steps of an axis that counts. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7, 1e8];

/** Moments as people read them: with seconds where the picture shows minutes, with days where weeks. */
const clocks = (plot, ticks) => {
  const span = plot.scales.x.max - plot.scales.x.min;
  return ticks.map((one) => {
    const then = new Date(one * 1000);
    const clock = then.toLocaleTimeString("en-GB").slice(0, span < 600 ? 8 : 5);
    return span > 172800 ? `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${clock}` : clock;
  });
};

const padded = (low, high) => {
  if (low === null || high === null) return [0, 1];
  const margin = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - margin, high + margin];
};

/**
 * @param {{data: any[], series: object[], height?: number, time?: boolean, x: string, label: string,
 *   onPick?: (index: number) => void, hooks?: object, version?: any}} props  `series` in uPlot's words,
 *   with `stroke` and `fill` as names of the style sheet's colours; so are `bands` between two of them
 */
export function Chart({ data, series, height = 220, time = false, x, label, onPick, hooks = {}, span = null, whole = false, bands = null }) {
  const [place, width] = useWidth();
  const plot = useRef(null);
  const now = useRef(data);
  now.current = data;
  const picking = useRef(onPick);
  picking.current = onPick;
  const shape = JSON.stringify([series.map(({ label: name, stroke, dash }) => [name, stroke, dash]), height, time, bands]);
  const within = useRef(span);
  within.current = span;
  useEffect(() => {
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(), now.current, place.current);
      const over = plot.current.over;
      over.addEventListener("click", () => {
        if (picking.current && plot.current.cursor.idx !== null) picking.current(plot.current.cursor.idx);
      });
      place.current.firstElementChild.setAttribute("aria-hidden", "true");
    };
    const axis = () => ({
      stroke: colour("quiet"), grid: { stroke: colour("grid"), width: 1 },
      ticks: { stroke: colour("grid"), width: 1, size: 4 }, font: "11px system-ui, sans-serif",
    });
    const options = () => ({
      width: Math.max(120, place.current.clientWidth), height, padding: [8, 12, 0, 0],
      cursor: { drag: { x: true, y: false }, points: { size: 6 } },
      legend: { show: true, live: true },
      scales: { x: { time }, y: { range: (_, low, high) => within.current ?? padded(low, high) } },
      axes: [{ ...axis(), size: 30, ...(time ? { values: clocks, space: (_plot, _axis, low, high) => (high - low > 172800 ? 110 : 64) } : whole ? { incrs: WHOLE } : {}) }, { ...axis(), size: 58, values: (_, ticks) => ticks.map((one) => (one === null ? "" : number(one, 4))) }],
      series: [{ label: x, value: (_, raw) => (raw === null || raw === undefined ? "–" : time ? moment(raw) : number(raw)) }, ...series.map((one) => ({
        ...one,
        stroke: one.stroke && colour(one.stroke), fill: one.fill && colour(one.fill),
        points: one.points && { ...one.points, fill: one.points.fill && colour(one.points.fill), stroke: one.stroke && colour(one.stroke) },
        value: (_, raw) => (raw === null || raw === undefined ? "–" : number(raw)),
      }))],
      hooks,
      ...(bands ? { bands: bands.map((one) => ({ ...one, fill: colour(one.fill) })) } : {}),
    });
    make();
    const end = onTheme(make);
    return () => {
      end();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => {
    plot.current?.setData(data, true);
  }, [data]);
  useEffect(() => {
    plot.current?.setSize({ width: Math.max(120, width), height });
  }, [width, height]);
  return html`<figure class="chart" role="img" aria-label=${label}><div ref=${place}></div></figure>`;
}
