"""The search as it was, by slider, key and address; and whom the tensors of a trial came from."""

from __future__ import annotations

import re
import time

import pytest

from tests.support.browser import Browser
from tests.support.made_search import MadeSearch
from tests.support.page_server import PageServer
from tests.system.page.conftest import search_of
from tests.system.page.test_pages import complaints

pytestmark = pytest.mark.needs("chromium")

COUNTS = "[data-lapse]"


def then(search: MadeSearch, moment: float) -> str:
    """The counts of a moment, as the bar has them; a trial is proposed 0.2 s after it was asked."""
    states = {"open": 0, "queued": 0, "running": 0, "ended": 0}
    for one in search.trials:
        if one.created > moment:
            continue
        if one.ended is not None and one.ended <= moment:
            states["ended"] += 1
        elif one.started is not None and one.started <= moment:
            states["running"] += 1
        else:
            states["queued" if one.created + 0.2 <= moment else "open"] += 1
    words = ("in the tuner", "wait", "run", "over")
    return " · ".join(f"{many} {word}" for many, word in zip(states.values(), words, strict=True))


def at(browser: Browser) -> float:
    """The moment in the address."""
    found = re.search(r"[?&]at=([\d.]+)", browser.driver.current_url)
    assert found is not None, browser.driver.current_url
    return float(found[1])


@pytest.mark.parametrize("page", ["", "/lineage", "/trials"])
@pytest.mark.parametrize("after", [5, 61.5, 90])
def test_an_address_shows_the_search_as_it_was(browser: Browser, page: str, after: float) -> None:
    search = search_of(400)
    moment = search.began + after
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}{page}?at={moment:.3f}")
        browser.waits_for(then(search, round(moment, 3)), COUNTS)
        browser.picture(f"lapse{page.replace('/', '-') or '-overview'}-{after:g}")
        over = [one for one in search.trials if one.ended and one.ended <= moment]
        best = max((one.value for one in over if one.value is not None), default=None)
        if page == "" and best is not None:
            assert f"{best:.4f}"[:6] in browser.text("[data-best]")
        assert browser.faults() == []


def test_keys_and_the_slider_go_through_time_and_back_to_now(browser: Browser) -> None:
    search = search_of(400)
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}")
        browser.waits_for("look back")
        browser.keys("b")
        browser.waits_for("over", COUNTS)
        end = at(browser)
        browser.keys(",")
        browser.until(lambda: at(browser) < end, "a step back")
        browser.run(
            "const one = document.querySelector('.lapse input'); one.value = 20;"
            "one.dispatchEvent(new Event('input', {bubbles: true}));"
            "one.dispatchEvent(new Event('change', {bubbles: true}))"
        )
        low = min(one.created for one in search.trials)
        expected = low + (time.time() - low) * 20 / 1000  # its end is the last event
        browser.until(lambda: abs(at(browser) - expected) < 5, "the slider")
        browser.waits_for(then(search, at(browser)), COUNTS)
        browser.keys("b")
        browser.until(lambda: "at=" not in browser.driver.current_url, "now")
        browser.waits_for("look back")
        assert browser.faults() == []


def test_time_goes_on_by_itself_until_it_is_stopped(browser: Browser) -> None:
    search = search_of(400)
    start = search.began + 10
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}/lineage?at={start:.3f}")
        browser.waits_for("over", COUNTS)
        before = browser.text(COUNTS)
        browser.keys("p")
        browser.until(lambda: browser.text(COUNTS) != before, "time goes on")
        browser.waits_for("stop", ".lapse button[aria-pressed=true]")
        browser.keys("p")
        browser.until(lambda: browser.all(".lapse button[aria-pressed=false]"), "it stands")
        browser.until(lambda: at(browser) > start, "the address has where it stopped")
        browser.waits_for(then(search, at(browser)), COUNTS)
        assert len([one for one in server.asked if "/history" in one]) == 1
        assert browser.faults() == []


def test_what_was_cannot_be_changed(browser: Browser) -> None:
    """Mutation: buttons of now over what was then."""
    search = search_of(400)
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}")
        browser.waits_for("stop…")
        browser.open(f"{server.url}e/{search.ident}?at={search.began + 60:.3f}")
        browser.waits_for("over", COUNTS)
        browser.until(lambda: "stop…" not in browser.text("main"), "no button")


def test_the_bar_is_accessible(browser: Browser) -> None:
    search = search_of(400)
    found = {}
    with PageServer(search) as server:
        for theme in ("light", "dark"):
            browser.theme(theme)
            for page in ("", "/lineage"):
                browser.open(f"{server.url}e/{search.ident}{page}?at={search.began + 60:.3f}")
                browser.waits_for("over", COUNTS)
                found[f"{page} {theme}"] = complaints(browser)
    assert {page: one for page, one in found.items() if one} == {}


def test_a_phone_shows_the_bar_without_scrolling_sideways(browser: Browser) -> None:
    search = search_of(400)
    with PageServer(search) as server:
        browser.size(390, 844, phone=True)
        browser.open(f"{server.url}e/{search.ident}?at={search.began + 60:.3f}")
        browser.waits_for("over", COUNTS)
        browser.picture("phone-lapse")
        assert browser.run("return document.documentElement.scrollWidth") <= 390


def test_tensors_are_shown_with_their_ancestors(browser: Browser) -> None:
    search = search_of(400)
    best = search.best()
    assert best is not None
    tensors = "section[aria-label^='tensors']"
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}/t/{best.trial}")
        browser.waits_for("first written by", tensors)
        browser.waits_for("<b>head</b>", tensors)
        text = browser.text(tensors)
        assert f"bequeath trial tensors -e {search.ident} {best.trial}" in text
        assert f"{best.generation} generations ago" in text
        browser.one(f"{tensors} details summary").click()
        browser.waits_for("tail.weight", tensors)
        browser.run("document.querySelector(arguments[0]).scrollIntoView()", tensors)
        browser.picture("tensors")
        assert complaints(browser) == []
        failed = next(one for one in search.trials if one.outcome == "failed")
        browser.open(f"{server.url}e/{search.ident}/t/{failed.trial}")
        browser.waits_for("has committed no weights", tensors)
        assert browser.faults() == []
