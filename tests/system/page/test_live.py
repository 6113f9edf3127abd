"""What changes while one looks: trials, the head, the line; and that questions do not pile up."""

from __future__ import annotations

import dataclasses

import pytest

from dispatcher.sinks.standing import SinkStanding
from tests.support.browser import Browser
from tests.support.made_search import MadeSearch
from tests.support.page_server import PageServer

pytestmark = pytest.mark.needs("chromium")


def search() -> MadeSearch:
    made = MadeSearch(60)
    made.add(state="running")
    return made


def test_a_trial_appears_as_it_changes_without_a_question(browser: Browser) -> None:
    """Mutation: the page asks for the table now and then."""
    made = search()
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/trials?sort=-trial")
        browser.waits_for("61 trials")
        asked = len(server.asked)
        made.trials[-1].state, made.trials[-1].outcome, made.trials[-1].value = (
            "ended",
            "killed",
            0.99125,
        )
        server.tell(made.trials[-1].trial, made.add(state="running").trial)
        browser.waits_for("62 trials")
        browser.waits_for("0.99125", ".virtual")
        again = [one for one in server.asked[asked:] if "/table" in one or "/changes?" in one]
        assert again == [], "the stream has brought it"


def test_a_head_that_is_gone_is_said_and_forgotten_when_it_is_back(browser: Browser) -> None:
    made = search()
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}")
        browser.waits_for("stop…")
        server.lose_head()
        browser.waits_for("The head has not answered since", ".gone")
        browser.waits_for("resume…")
        server.head = True
        server.tell(0)
        browser.until(lambda: not browser.all(".gone"), "the line goes")


def test_a_tracker_that_lags_is_named_until_it_has_taken_all(browser: Browser) -> None:
    """Mutation: a page that knows nothing of trackers."""
    made = search()
    error = "the MLflow server does not answer: <b>refused</b>"
    slow = SinkStanding("mlflow", "mlflow", "http://127.0.0.1:5000", 6, 54, 1.76e9, error)
    made.sinks = [SinkStanding("tensorboard", "tensorboard", "/home/me/tb", 0, 60, 1.76e9, "")]
    made.sinks.append(slow)
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}")
        browser.waits_for("up to date, 60 trials", ".trackers")
        browser.waits_for("6 trials behind", ".trackers")
        browser.waits_for("<b>refused</b>", ".trackers")
        browser.picture("trackers")
        made.sinks[1] = dataclasses.replace(slow, behind=0, taken=60, error="")
        server.tell(0)
        browser.until(lambda: "behind" not in browser.text(".trackers"), "it has taken all")
        assert browser.faults() == []


def test_a_server_that_was_killed_comes_back_without_loss(browser: Browser) -> None:
    made = search()
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/trials")
        browser.waits_for("61 trials")
        server.stop()
        browser.waits_for("has not answered for", ".gone")
        browser.picture("server-gone")
        made.add()
        server.tell(61)  # while nobody listens
        server.start()
        browser.waits_for("62 trials")
        browser.until(lambda: not browser.all(".gone"), "the line goes")


def test_where_no_stream_passes_the_page_asks_one_question_at_a_time(browser: Browser) -> None:
    made = search()
    with PageServer(made) as server:
        server.streams = False
        browser.open(f"{server.url}e/{made.ident}/trials")
        browser.waits_for("61 trials")
        browser.waits_for("live (asking)")
        made.add()
        server.tell(61)
        browser.waits_for("62 trials")
        made.add()
        server.tell(62)
        browser.waits_for("63 trials")
        changes = f"/api/v1/experiments/{made.ident}/changes"
        assert server.most_at_once[changes] == 1
        assert len([one for one in server.asked if "/changes?" in one]) < 8  # it waits for answers


def test_an_experiment_that_nobody_knows_gets_the_words_of_the_server(browser: Browser) -> None:
    with PageServer(search()) as server:
        browser.open(f"{server.url}e/nobody")
        browser.waits_for("no experiment goes by that name")
        browser.waits_for("look at the list")


_HIDE = """
Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});
document.dispatchEvent(new Event('visibilitychange'));
"""


def test_a_hidden_page_holds_no_stream_and_catches_up_when_it_is_seen(browser: Browser) -> None:
    """A browser has six connections for all of its pages."""
    made = search()
    with PageServer(made) as server:
        events = f"/api/v1/experiments/{made.ident}/events"
        browser.open(f"{server.url}e/{made.ident}/trials")
        browser.waits_for("61 trials")
        browser.until(lambda: server.at_once.get(events) == 1, "a stream")
        browser.run(_HIDE, True)
        made.add()
        server.tell(61)
        browser.until(lambda: server.at_once[events] == 0, "the stream is let go")
        assert "61 trials" in browser.text()
        browser.run(_HIDE, False)
        browser.waits_for("62 trials")
