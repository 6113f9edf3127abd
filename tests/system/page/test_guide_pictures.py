"""The pictures of the guide: each page as it is now, small enough for the repository.

They are kept by ``make pictures``; without it they are taken and judged, and thrown away.
"""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest
from PIL import Image

from tests.support.browser import Browser
from tests.support.made_search import MadeSearch, MadeTrial
from tests.support.page_server import PageServer

pytestmark = pytest.mark.needs("chromium")

#: The folder in which they are kept.
KEPT_BY = "BEQUEATH_GUIDE_PICTURES"

MOST_BYTES = 150_000
COLOURS = 128
LOG = b"".join(b"epoch %2d  loss %.4f  accuracy %.4f\n" % (n, 0.9 / n, 1 - 0.4 / n)
               for n in range(1, 13))  # fmt: skip

#: By name: the address below the experiment, what is waited for, theme, width and height.
PICTURES = {
    "overview": ("", "what made children better", "light", 1280, 940),
    "trials": ("/trials?where=value>0.9&marked={best},{parent}", "of 1,260", "light", 1280, 560),
    "trial": ("/t/{best}", "epoch 12", "light", 1280, 900),
    "lineage": ("/lineage?pick={best}", "Wheel zooms", "dark", 1280, 720),
    "waits": ("/waits", "idle because", "light", 1280, 720),
    "compare": ("/compare?trials={best},{parent}", "what differs", "light", 1280, 760),
}


@pytest.fixture(scope="module")
def search() -> MadeSearch:
    """A search of 1,200 trials that are over, and some that run or wait."""
    made = MadeSearch(1_200, seed=5)
    for state, many in (("running", 40), ("blocked", 17), ("queued", 3)):
        for _ in range(many):
            made.add(state=state)
    _bring_near(made)
    return made


def _bring_near(made: MadeSearch) -> None:
    """Move the search in time, so that the newest of its trials has just begun or ended."""
    newest = max(moment for one in made.trials for moment in (one.started, one.ended) if moment)
    seconds = time.time() - 5.0 - newest
    made.began += seconds
    for one in made.trials:
        one.created += seconds
        one.started = one.started and one.started + seconds
        one.ended = one.ended and one.ended + seconds


def best_of(search: MadeSearch) -> MadeTrial:
    best = search.best()
    assert best is not None
    return best


def small(png: bytes) -> bytes:
    """The same picture in fewer colours."""
    with Image.open(io.BytesIO(png)) as picture:
        plain = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    packed = io.BytesIO()
    plain.save(packed, "PNG", optimize=True)
    return packed.getvalue()


def keep(browser: Browser, name: str) -> None:
    """Judge a picture of what is to be seen, and keep it if that is asked for."""
    packed = small(browser.driver.get_screenshot_as_png())
    assert len(packed) < MOST_BYTES
    if folder := os.environ.get(KEPT_BY):
        Path(folder).mkdir(exist_ok=True)
        (Path(folder) / f"{name}.png").write_bytes(packed)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_guide(browser: Browser, search: MadeSearch, name: str) -> None:
    address, text, theme, width, height = PICTURES[name]
    best = best_of(search)
    with PageServer(search, log=LOG) as server:
        browser.theme(theme)
        browser.size(width, height)
        there = address.format(best=best.trial, parent=best.parent)
        browser.open(f"{server.url}e/{search.ident}{there}")
        browser.waits_for(text)
        browser.until(lambda: "Reading" not in browser.text("main"), "the data")
        browser.run("document.activeElement?.blur()")
        browser.driver.execute_async_script(
            "const done = arguments[0]; setTimeout(() => requestAnimationFrame(done), 1200)"
        )
        keep(browser, name)
        assert browser.faults() == []


def test_a_picture_of_a_child(browser: Browser, search: MadeSearch) -> None:
    best = best_of(search)
    with PageServer(search, log=LOG) as server:
        browser.size(1280, 720)
        browser.open(f"{server.url}e/{search.ident}/t/{best.trial}")
        browser.waits_for("child…")
        browser.click("child…")
        browser.waits_for("It begins with the weights", "dialog")
        depth = best.parameters["depth"]
        given = str(browser.one("dialog textarea").get_attribute("value"))
        given = given.replace(f'"depth": {depth}', f'"depth": {depth + 1}')
        browser.run(
            "const [box, text] = arguments; box.value = text;"
            "box.dispatchEvent(new Event('input', {bubbles: true}))",
            browser.one("dialog textarea"), given,
        )  # fmt: skip
        browser.waits_for(f"depth {depth} → {depth + 1}", "dialog")
        keep(browser, "child")
