/** Colours of canvases, as the style sheet has them now; no two are told apart by hue alone. */

const probe = () => getComputedStyle(document.documentElement);

/** A custom property of the style sheet. */
export const colour = (name) => probe().getPropertyValue(`--${name}`).trim();

/** The lines of several trials: distinct for colour-blind eyes (Okabe and Ito), with dashes beside. */
export const LINES = ["line-1", "line-2", "line-3", "line-4", "line-5", "line-6", "line-7", "line-8"];
export const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [2, 2], [6, 3], [], [8, 3, 2, 3]];

/** Steps of the ramp from the worst to the best rank. */
export const STEPS = 32;

/** The ramp: from a colour near the background to one far from it. */
export function ramp() {
  const stops = ["rank-0", "rank-1", "rank-2"].map((name) => channels(colour(name)));
  return Array.from({ length: STEPS }, (_, step) => {
    const at = (step / (STEPS - 1)) * 2;
    const [low, high] = at < 1 ? [stops[0], stops[1]] : [stops[1], stops[2]];
    const part = at < 1 ? at : at - 1;
    return `rgb(${low.map((one, place) => Math.round(one + (high[place] - one) * part)).join(",")})`;
  });
}

function channels(hex) {
  const text = hex.replace("#", "");
  return [0, 2, 4].map((at) => parseInt(text.slice(at, at + 2), 16) || 0);
}

/** Calls back when the theme changes. */
export function onTheme(listener) {
  const query = matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", listener);
  document.addEventListener("theme", listener);
  return () => {
    query.removeEventListener("change", listener);
    document.removeEventListener("theme", listener);
  };
}

const KEPT = "bequeath.theme";
export const THEMES = [["", "◐ system"], ["light", "○ light"], ["dark", "● dark"]];

/** The theme that was chosen: light, dark, or "" for the system's. */
export function theme() {
  try {
    return localStorage.getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}

/** Chooses a theme, here and for next time. */
export function setTheme(word) {
  try {
    localStorage.setItem(KEPT, word);
  } catch { /* it holds for this page then */ }
  if (word) document.documentElement.dataset.theme = word;
  else delete document.documentElement.dataset.theme;
  document.dispatchEvent(new Event("theme"));
}
