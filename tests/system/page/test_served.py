"""The page over ``bequeath web`` and a real experiment: seen, changed, lost and taken up."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from dispatcher import queries
from dispatcher.control.client import RunFile
from tests.integration.cli.conftest import Place, place
from tests.support.browser import Browser

pytest.importorskip("dispatcher.web.server", reason="needs the server of the page")

__all__ = ["place"]

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture
def server(place: Place) -> Iterator[Any]:
    """A server over an experiment of which two trials run."""
    from tests.support.web_server import WebServer

    place("create", "experiment.yml")
    place.wait_until_running()
    server = WebServer(place.kept, place.folder / "state")
    yield server
    server.end()


def settled(browser: Browser, text: str) -> None:
    """A dialog has done what it was for."""
    browser.until(lambda: browser.all("dialog .done"), text)
    browser.click("close", "dialog button")
    browser.until(lambda: not browser.all("dialog"), "the dialog is closed")


def test_a_running_experiment_is_seen_and_changed_by_click(
    browser: Browser, place: Place, server: Any
) -> None:
    name = place.experiment.name
    base = f"http://{server.host}:{server.port}/"
    browser.open(server.link)
    browser.waits_for(name)
    assert browser.driver.current_url == base  # the code is not in the address
    browser.click("chain", "a")
    browser.waits_for("2 running")
    browser.waits_for("live")

    # What a trial writes, as it comes; markup and escapes are text.
    browser.open(f"{base}e/{name}/t/0")
    browser.waits_for("trial 0", ".log pre")
    browser.waits_for("stdout", "section[aria-label=files]")

    # A limit, and a trial of one's own: a child of what runs waits for it.
    browser.open(f"{base}e/{name}")
    browser.waits_for("limits…")
    browser.click("limits…")
    browser.one("dialog input").send_keys("3")
    browser.click("change", "dialog button[type=submit]")
    settled(browser, "the limit")
    browser.waits_for("of 3 slots busy")
    browser.click("submit…")
    box = browser.one("dialog textarea")
    browser.run(
        "const [box, text] = arguments; box.value = text;"
        "box.dispatchEvent(new Event('input', {bubbles: true}))",
        box,
        '{"n": 12345678901234567, "text": "<b>"}',
    )
    browser.click("submit", "dialog button[type=submit]")
    settled(browser, "the trial")
    (by_hand,) = (one for one in place.trials() if one.by_hand)
    assert by_hand.parameters == {"n": 12345678901234567, "text": "<b>"}

    # It is killed by click, and the page hears of it.
    browser.open(f"{base}e/{name}/t/{by_hand.id}")
    browser.waits_for("kill…")
    browser.click("kill…")
    browser.click("kill", "dialog button[type=submit]")
    settled(browser, "the kill")
    browser.waits_for("killed", "h1 + .state")
    browser.picture("served-trial")

    # The head dies: the page says so. It is taken up by click, and goes on to the end.
    browser.open(f"{base}e/{name}")
    browser.waits_for("stop…")
    run = RunFile.read(place.experiment)
    assert run is not None
    os.kill(run.pid, signal.SIGKILL)
    browser.waits_for("resume…")
    browser.waits_for("no head")
    browser.picture("served-head-gone")
    place.go()
    browser.click("resume…")
    browser.click("resume", "dialog button[type=submit]")
    settled(browser, "the resume")
    browser.waits_for("completed", ".why")
    browser.until(lambda: not browser.all(".gone"), "the line of the head goes")
    for page in ("trials", "lineage", "waits", "hosts", "compare?trials=0,1", "checks"):
        browser.open(f"{base}e/{name}/{page}")
        browser.until(lambda: browser.all("main h1, main h2"), page)
        browser.until(lambda: "Reading" not in browser.text("main"), f"the data of {page}")
        assert browser.faults() == []
        assert not browser.all(".gone")
        browser.picture(f"served-{page.partition('?')[0]}")
    browser.click("verify")
    browser.waits_for("holds:\nThe store is what its journal says")
    with queries.ExperimentReader.open(place.experiment) as reader:
        assert queries.experiment_summary(reader).slots == 3
    recorded = [json.loads(line)["what"] for line in server.log.read_text().splitlines()]
    changes = ["experiment-update", "trial-submit", "trial-kill", "resume", "experiment-verify"]
    assert [one for one in recorded if one in changes] == changes


def test_a_browser_without_a_cookie_gets_the_words_that_help(browser: Browser, server: Any) -> None:
    browser.driver.delete_all_cookies()
    browser.open(f"http://{server.host}:{server.port}/e/anything")
    browser.waits_for("bequeath web --link")
    browser.faults()
