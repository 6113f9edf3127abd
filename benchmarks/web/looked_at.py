"""When something is to be seen in a real Chromium: asked of the page itself, frame by frame.

The browser, ours and a peer's, is made anew for each look: nothing is kept from before, no compiled
script either. A thing is to be seen from the frame after the one in which it was found drawn.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.browser import Browser

#: Our first chart; the whole overview: both charts, parallel coordinates, gains, recent trials.
FIRST_CHART = "performance.getEntriesByName('first-chart').length"
OVERVIEW = (
    "document.querySelectorAll('.overview .u-wrap canvas').length >= 2"
    " && document.querySelector('canvas.parallel')?.width > 300"
    " && document.querySelector('.gains li') && document.querySelectorAll('.list.small tr').length"
)

#: A chart of Plotly with marks in it, as Optuna's dashboard draws them (SVG, or WebGL where many).
PLOTLY = (
    "document.querySelector('.js-plotly-plot .scatterlayer .trace path.point,"
    " .js-plotly-plot .scatterlayer .trace path.js-line, .js-plotly-plot .gl-canvas-focus')"
)

_WATCH = """
(() => {
  const wanted = %s;
  window.seenAt = {};
  const look = () => {
    for (const [name, holds] of Object.entries(wanted)) {
      if (name in window.seenAt) continue;
      let found = false;
      try { found = holds(); } catch { found = false; }
      if (found) {
        window.seenAt[name] = null;
        requestAnimationFrame(() => requestAnimationFrame(
          () => { window.seenAt[name] = performance.now(); }));
      }
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
"""


def chromium() -> str:
    """Why there is no browser here; empty if there is one."""
    missing = [one for one in ("chromium", "chromedriver") if shutil.which(one) is None]
    return f"needs {', '.join(missing)}: sudo make enable" if missing else ""


@contextmanager
def browser() -> Iterator[Browser]:
    """A new browser with nothing in it."""
    with tempfile.TemporaryDirectory(prefix="bq-web-") as name:
        one = Browser(Path(name))
        try:
            yield one
        finally:
            one.close()


def seen_ms(
    one: Browser, url: str, wanted: dict[str, str], limit_s: float = 120.0
) -> dict[str, float]:
    """Milliseconds from the navigation until each thing is to be seen.

    Args:
        one: a browser; watches all its pages from now on.
        url: where to go.
        wanted: expressions by name, true once it is drawn.
        limit_s: seconds to wait.
    """
    functions = ", ".join(f"{name!r}: () => ({text})" for name, text in wanted.items())
    script = {"source": _WATCH % f"{{{functions}}}"}
    one.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", script)
    one.open(url)

    def all_seen() -> Any:
        found = one.run("return window.seenAt ?? {}")
        return found if len(found) == len(wanted) and None not in found.values() else None

    found = one.until(all_seen, f"{', '.join(wanted)} at {url}", limit_s)
    return {name: float(at) for name, at in found.items()}
