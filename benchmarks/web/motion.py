"""What moves: a trial that ends until it is to be seen; frames of scrolling and zooming."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.peers.made_trials import TOGETHER
from benchmarks.rows import Row, median, quantile, row
from benchmarks.web.arrival import link_of, served
from benchmarks.web.looked_at import browser
from benchmarks.web.searching import paced_search
from benchmarks.web.stores import EXPERIMENT, made
from tests.support.browser import Browser
from tests.support.motion import SCROLL, ZOOM
from tests.support.web_server import WebServer

SEEN_S, FRAME_MS = 1.0, 33.0

#: Trials a second that one watches come in, out of step with whoever looks; and seconds.
RATE, WATCHED_S = 3.7, 60.0

#: Notes when each trial is first among the recent ones, in milliseconds since the epoch, once the
#: frame that shows it has been drawn.
_NOTES = """
window.firstSeen = {};
const look = () => {
  const now = [...document.querySelectorAll('table.list.small th a')].map((one) => one.innerText);
  const fresh = now.filter((one) => !(one in window.firstSeen));
  for (const one of fresh) window.firstSeen[one] = null;
  requestAnimationFrame(() => fresh.forEach((one) => { window.firstSeen[one] = Date.now(); }));
  requestAnimationFrame(look);
};
look();
"""


def rows_of_news(*, quick: bool = False) -> list[Row]:
    """From a trial's end in the journal until a browser shows it, of a search that runs."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bq-web-")))
        search = stack.enter_context(paced_search(folder, RATE))
        server = stack.enter_context(served(search.home))
        with browser() as one:
            seen = _seen(one, server, search.name, 5.0 if quick else WATCHED_S)
        times = _ended(server, search.name)
    late = [seen[trial] - times[trial] for trial in seen if trial in times]
    missed = [one for one in times if min(seen) < one < max(seen) and one not in seen]
    p50, p95, most = (quantile(late, share) for share in (0.5, 0.95, 1.0))
    return [
        row(
            "a trial's end, by the journal's clock → to be seen in the browser, p95",
            f"≤ {SEEN_S:g} s",
            f"{p95:.2f} s",
            p95 <= SEEN_S and not missed,
            f"{len(late)} trials of a search that runs, {RATE:g} a second; p50 {p50:.2f} s, the "
            f"most {most:.2f} s; {len(missed)} never seen",
        )
    ]


def _seen(one: Browser, server: WebServer, experiment: str, seconds: float) -> dict[int, float]:
    """When trials came to be seen that had not ended when one came, in seconds since the epoch."""
    one.driver.get(server.link)
    one.open(f"http://127.0.0.1:{server.port}/e/{experiment}")
    one.until(lambda: one.all("table.list.small th a"), "recent trials")
    one.run(_NOTES)
    time.sleep(1.0)
    known = set(one.run("return Object.keys(window.firstSeen)"))
    time.sleep(seconds)
    found: dict[str, Any] = one.run("return window.firstSeen")
    return {
        int(trial): at / 1e3 for trial, at in found.items() if trial not in known and at is not None
    }


def _ended(server: WebServer, experiment: str) -> dict[int, float]:
    columns = {
        one["name"]: one for one in server.get(f"/experiments/{experiment}/table")["columns"]
    }
    pairs = zip(columns["trial"]["values"], columns["ended"]["values"], strict=True)
    return {int(trial): float(at) for trial, at in pairs if at is not None}


def rows_of_frames(*, quick: bool = False) -> list[Row]:
    """Scrolling all trials, and zooming the lineage."""
    rows = []
    for trials, metrics in ((400, 20),) if quick else ((10_000, 100), (50_000, 10)):
        with served(made(trials, metrics)) as server, browser() as one:
            one.driver.get(link_of(server))
            for page, script, what in (
                ("trials", SCROLL, "scrolling"),
                ("lineage", ZOOM, "zooming"),
            ):
                one.open(f"http://127.0.0.1:{server.port}/e/{EXPERIMENT}/{page}")
                one.waits_for(f"{trials + TOGETHER:,} trials", limit_s=60.0)  # with open ones
                times = one.driver.execute_async_script(script)
                middle = median(times)
                rows.append(
                    row(
                        f"{what} {trials:,} trials, median frame",
                        f"≤ {FRAME_MS:g} ms",
                        f"{middle:.1f} ms",
                        middle <= FRAME_MS,
                        f"p95 {quantile(times, 0.95):.1f} ms; drawn by software, without a GPU",
                    )
                )
    return rows
