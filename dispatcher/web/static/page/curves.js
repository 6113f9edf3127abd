/** Curves of several trials over one axis. Pure. */
import { DASHES, LINES } from "./colours.js";

/** Bands as three curves: what nine tenths, half, and a tenth lie below. */
const BANDS = [["90 % below", "high", "line-6", [2, 3], 0.7], ["median", "middle", "text", [], 1.2], ["10 % below", "low", "line-6", [2, 3], 0.7]];

/** Curves over one axis, as uPlot takes them, with bands of all behind them if there are some. */
export function joined(best, bands = null) {
  const behind = bands?.steps.length ? BANDS.map(([label, name, stroke, dash, width]) => ({ label, stroke, dash, width, steps: bands.steps, values: bands[name] })) : [];
  const curves = [...behind, ...best];
  const steps = [...new Set(curves.flatMap((one) => one.steps))].sort((a, b) => a - b);
  const place = new Map(steps.map((step, at) => [step, at]));
  const lines = curves.map((one) => {
    const line = new Array(steps.length).fill(null);
    one.steps.forEach((step, at) => {
      line[place.get(step)] = one.values[at];
    });
    return line;
  });
  const series = [
    ...behind.map(({ label, stroke, dash, width }) => ({ label, stroke, dash, width, spanGaps: true, points: { show: false } })),
    ...best.map((one, at) => ({
      label: String(one.trial), stroke: LINES[at % LINES.length], dash: DASHES[at % DASHES.length], width: 1.8, spanGaps: true, points: { show: one.steps.length < 2 },
    })),
  ];
  return { data: [steps, ...lines], series, bands: behind.length ? [{ series: [1, 3], fill: "grid" }] : null };
}
