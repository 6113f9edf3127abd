"""A run as one HTML file, opened from the disk: all pages are drawn, and nobody is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dispatcher.web.saved.saving import SavedRun, save_run
from tests.support.browser import Browser
from tests.support.made_run import MadeRun
from tests.support.made_search import MadeSearch
from tests.support.page_server import STATIC
from tests.system.page.conftest import search_of

pytestmark = pytest.mark.needs("chromium")

LOG = "</script><img src=x onerror=document.title='owned'>\n\x1b[31mred\x1b[0m\nlast line\n"


def asked(browser: Browser) -> set[str]:
    """What was asked for since the last look, of the disk or a network; but the document itself."""
    found = set()
    for entry in browser.driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith("data:image/svg+xml") and url != "about:blank":
                found.add(url.partition("#")[0])
    return found


def opened(
    browser: Browser, folder: Path, search: MadeSearch, page: str = "", log: str = ""
) -> tuple[str, SavedRun]:
    saved = save_run(MadeRun(search, log), STATIC, logs=bool(log))
    file = folder / "the run.html"
    file.write_bytes(saved.document)
    url = file.as_uri()
    asked(browser)
    browser.open(url + page)
    return url, saved


@pytest.mark.parametrize(
    "page,text",
    [
        ("", "how trials ended"),
        ("/trials", "Trials"),
        ("/lineage", "Wheel zooms"),
        ("/t/3", "all that is known"),
        ("/compare?trials=3,4", "what differs"),
        ("/checks", "No trial descends from itself"),
        ("/waits", "who waits for whom"),
        ("/hosts", "Hosts"),
    ],
)
def test_each_page_is_drawn_from_the_file_alone(
    browser: Browser, tmp_path: Path, page: str, text: str
) -> None:
    """Mutation: an address that leaves the file, a module that is not linked, a request."""
    search = search_of(400)
    url, _ = opened(browser, tmp_path, search, f"#/e/{search.ident}{page}" if page else "")
    browser.waits_for(text)
    browser.until(lambda: "Reading" not in browser.text("main"), "the data")
    browser.picture(f"saved-{page.strip('/').partition('?')[0].replace('/', '-') or 'overview'}")
    assert browser.faults() == []
    assert asked(browser) == {url}


def test_all_that_the_overview_promises_is_in_the_file(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, search_of(400))
    browser.waits_for("curves of the best 8")
    assert "This line of" in browser.text("main")
    assert "the whole search" in browser.text("main")
    assert len(browser.all("ul.gains li")) >= 4
    assert "saved" in browser.text("header")
    browser.one("details.left-out summary").click()
    browser.waits_for("--with-logs", "details.left-out")


def test_one_walks_through_the_file_by_click_key_and_back(browser: Browser, tmp_path: Path) -> None:
    search = search_of(400)
    url, _ = opened(browser, tmp_path, search, log="epoch 1\nlast line\n")
    browser.waits_for("how trials ended")
    browser.click("lineage", "a")
    browser.waits_for("Wheel zooms")
    assert browser.driver.current_url == f"{url}#/e/{search.ident}/lineage"
    browser.keys("g", "t")
    browser.waits_for("Trials", "h1")
    browser.driver.back()
    browser.waits_for("Wheel zooms")
    best = search.best()
    assert best is not None
    browser.run("location.hash = arguments[0]", f"#/e/{search.ident}/t/{best.trial}")
    browser.waits_for(f"Trial {best.trial}", "h1")
    browser.waits_for("last line", ".log pre")
    browser.waits_for("stem", "section[aria-label^='tensors']")
    assert browser.all("button[title^='a new trial']") == []  # nothing can be changed
    assert browser.faults() == []
    assert asked(browser) == {url}


def test_a_search_is_looked_back_at_in_the_file(browser: Browser, tmp_path: Path) -> None:
    search = search_of(400)
    opened(browser, tmp_path, search, f"#/e/{search.ident}/lineage")
    browser.waits_for("Wheel zooms")
    middle = search.began + 60
    there = sum(one.created <= middle for one in search.trials)
    browser.run("location.hash = arguments[0]", f"#/e/{search.ident}/lineage?at={middle:.3f}")
    browser.waits_for(f"{there} trials")
    browser.picture("saved-lapse")
    assert browser.faults() == []


@pytest.mark.parametrize("page", ["", "/t/0", "/lineage?pick=0", "/compare?trials=0,1"])
def test_no_text_of_a_trial_gets_out_of_its_block(
    browser: Browser, tmp_path: Path, page: str
) -> None:
    """Mutation: data as JSON in a script, a title that is not escaped."""
    search = search_of(40, hostile=True)
    opened(browser, tmp_path, search, f"#/e/{search.ident}{page}", log=LOG)
    browser.waits_for("<i>&amp;⟨U+202E⟩")
    browser.until(lambda: "Reading" not in browser.text("main"), "the data")
    if page == "/t/0":
        browser.waits_for("</script><img", ".log pre")
        browser.waits_for("<b>head</b>")
    assert browser.run("return document.querySelectorAll('img, i, iframe, b script').length") == 0
    assert "owned" not in browser.driver.title
    assert browser.faults() == []


def test_a_script_that_was_put_into_the_file_does_not_run(browser: Browser, tmp_path: Path) -> None:
    """Mutation: a policy with ``unsafe-inline``, or without digests."""
    saved = save_run(MadeRun(search_of(40)), STATIC)
    text = saved.document.decode()
    evil = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    file = tmp_path / "evil.html"
    file.write_text(text.replace("</body>", f"{evil}</body>"))
    browser.open(file.as_uri())
    browser.waits_for("how trials ended")
    assert "owned" not in browser.driver.title
    assert any("script-src" in one for one in browser.faults())


def test_ten_thousand_trials_are_some_megabytes_and_are_drawn(
    browser: Browser, tmp_path: Path
) -> None:
    search = search_of(10_000)
    _, saved = opened(browser, tmp_path, search)
    browser.waits_for("how trials ended")
    browser.until(
        lambda: browser.run("return performance.getEntriesByName('first-chart').length"), "a chart"
    )
    first = browser.run("return performance.getEntriesByName('first-chart')[0].startTime")
    print(f"{len(saved.document) / 1e6:.2f} MB, first chart after {first:.0f} ms")
    assert len(saved.document) <= 8_000_000
    assert saved.detailed == saved.trials
    browser.run("location.hash = arguments[0]", f"#/e/{search.ident}/t/9999")
    browser.waits_for("all that is known")
    assert browser.faults() == []
