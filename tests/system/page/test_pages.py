"""Each page with no, one, ten and fifty thousand trials: drawn, without a fault, with a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.browser import Browser
from tests.support.page_files import PAGES as PAGE_MODULES
from tests.support.page_server import PageServer
from tests.system.page.conftest import search_of

pytestmark = pytest.mark.needs("chromium")

SIZES = [0, 1, pytest.param(10_000, marks=pytest.mark.extended), 50_000]

#: What is to be seen on each page, and is not before its data are there.
PAGES = {
    "": "how trials ended",
    "/trials": "Trials",
    "/lineage": "Lineage",
    "/waits": "idle because: lookahead full",
    "/hosts": "Hosts",
    "/plots?kind=slots": "what was in the way",
    "/compare": "Name two to eight trials",
    "/checks": "No trial descends from itself",
}
AXE = (Path(__file__).parent / "vendor" / "axe.js").read_text()


def complaints(browser: Browser) -> list[str]:
    """What axe-core finds: rules of WCAG 2 A and AA, with the elements."""
    browser.run(AXE + "\nwindow.axe = axe;")
    found = browser.driver.execute_async_script(
        "const done = arguments[0];"
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})"
        ".then((told) => done(told.violations.map((one) =>"
        "`${one.id}: ${one.nodes.slice(0, 3).map((x) => x.html.slice(0, 200)).join(' ; ')}`)),"
        "(error) => done([String(error)]))"
    )
    return [str(one) for one in found]


def name_of(page: str) -> str:
    """The name of a page by its address below the experiment."""
    return page.partition("?")[0].strip("/").replace("/", "-") or "overview"


def test_each_page_that_there_is_is_drawn_at_each_size() -> None:
    """By the next two tests. Mutation: a new page that nobody opens with 50,000 trials."""
    lists = {"experiments", "leaderboard", "settings", "trial"}
    assert {name_of(page) for page in PAGES} | lists == set(PAGE_MODULES)


@pytest.mark.parametrize("trials", SIZES)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_drawn_without_a_fault(browser: Browser, page: str, trials: int) -> None:
    with PageServer(search_of(trials)) as server:
        browser.open(f"{server.url}e/{server.search.ident}{page}")
        browser.waits_for(PAGES[page])
        browser.picture(f"{name_of(page)}-{trials}")
        assert browser.faults() == []
        assert all(most == 1 for path, most in server.most_at_once.items() if "events" not in path)


@pytest.mark.parametrize("trials", SIZES)
def test_a_trial_and_the_lists_are_drawn_without_a_fault(browser: Browser, trials: int) -> None:
    search = search_of(trials)
    with PageServer(search, log=b"epoch 1\nepoch 2\n") as server:
        browser.open(server.url)
        browser.waits_for(search.ident)
        browser.picture(f"experiments-{trials}")
        browser.click("leaderboard", "a")
        browser.waits_for("data set digits" if trials else "No experiment that is meant")
        browser.picture(f"leaderboard-{trials}")
        browser.click("settings", "a")
        browser.waits_for("links that only read")
        browser.picture(f"settings-{trials}")
        browser.open(f"{server.url}e/{search.ident}/t/{max(0, trials - 1)}")
        browser.waits_for("epoch 2" if trials else "has no trial 0")
        browser.picture(f"trial-{trials}")
        faults = browser.faults()
        assert [one for one in faults if trials or "404" not in one] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_is_accessible(browser: Browser, theme: str) -> None:
    """Names, contrast and structure, as axe-core judges them."""
    search = search_of(400)
    best = search.best()
    assert best is not None
    found = {}
    with PageServer(search, log=b"\x1b[31mred\x1b[0m \x1b[33myellow\x1b[0m\n") as server:
        browser.theme(theme)
        pages = [
            *PAGES,
            f"/t/{best.trial}",
            f"/compare?trials={best.trial},3",
            f"/lineage?pick={best.trial}",
        ]
        for page in pages:
            browser.open(f"{server.url}e/{search.ident}{page}")
            browser.until(lambda: browser.all("main h1, main h2"), f"page {page}")
            browser.until(lambda: "Reading" not in browser.text("main"), f"the data of {page}")
            found[page] = complaints(browser)
            browser.picture(f"{theme}-{name_of(page)}")
        browser.open(server.url)
        browser.waits_for(search.ident)
        found["list"] = complaints(browser)
        server.share("POST", "/shares", {"name": "ann", "days": 7, "logs": True})
        browser.open(f"{server.url}settings")
        browser.waits_for("take back…")
        found["settings"] = complaints(browser)
        browser.picture(f"{theme}-settings")
    assert {page: one for page, one in found.items() if one} == {}


@pytest.mark.parametrize("page", [*PAGES, "/t/9"])
def test_a_phone_needs_no_scrolling_sideways(browser: Browser, page: str) -> None:
    with PageServer(search_of(400)) as server:
        browser.size(390, 844, phone=True)
        browser.open(f"{server.url}e/{server.search.ident}{page}")
        browser.until(lambda: browser.all("main h1, main h2"), "the page")
        browser.until(lambda: "Reading" not in browser.text("main"), "the data")
        browser.picture(f"phone-{name_of(page)}")
        assert browser.run("return document.documentElement.scrollWidth") <= 390


def test_a_prefix_of_a_proxy_changes_nothing(browser: Browser) -> None:
    with PageServer(search_of(1), prefix="/proxy/8077") as server:
        browser.open(f"{server.url}e/{server.search.ident}")
        browser.waits_for("how trials ended")
        browser.click("lineage", "a")
        browser.waits_for("Wheel zooms")
        assert browser.driver.current_url == f"{server.url}e/{server.search.ident}/lineage"
        assert browser.faults() == []
