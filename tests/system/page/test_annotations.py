"""Notes, tags, stars and boards: seen as text, changed by click, each beside its command."""

from __future__ import annotations

import dataclasses

import pytest

from dispatcher.queries import ExperimentListing
from tests.support.browser import Browser
from tests.support.made_search import MadeSearch
from tests.support.page_server import PageServer
from tests.system.page.test_hands import query
from tests.system.page.test_hostile import markup
from tests.system.page.test_pages import complaints

pytestmark = pytest.mark.needs("chromium")


def done(browser: Browser, word: str) -> None:
    browser.click(word, "dialog button[type=submit]")
    browser.waits_for("✓", "dialog")
    browser.click("close", "dialog button")
    browser.until(lambda: not browser.all("dialog"), "the dialog is closed")


def typed(browser: Browser, selector: str, text: str) -> None:
    browser.run(
        "const [box, text] = arguments; box.value = text;"
        "box.dispatchEvent(new Event('input', {bubbles: true}))", browser.one(selector), text
    )  # fmt: skip


def test_a_trial_is_noted_tagged_and_starred_by_click(browser: Browser) -> None:
    made = MadeSearch(40)
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/t/7")
        browser.waits_for("No notes.")
        browser.click("note…")
        typed(browser, "dialog textarea", "it's <b>good</b>\nindeed")
        browser.waits_for(f"bequeath trial note -e {made.ident} 7 'it'\\''s", "dialog")
        done(browser, "write")
        browser.waits_for("it's <b>good</b>\nindeed", ".notes")
        browser.click("tags…")
        typed(browser, "dialog input", "good data:x")
        browser.waits_for(f"bequeath trial tag -e {made.ident} 7 good data:x", "dialog")
        done(browser, "change")
        browser.waits_for("good", "section[aria-label='notes and tags']")
        browser.click("star…")
        browser.waits_for(f"bequeath trial star -e {made.ident} 7", "dialog")
        done(browser, "star")
        browser.waits_for("★", "section[aria-label='notes and tags']")
        browser.picture("annotated-trial")
        below = f"/experiments/{made.ident}/trials/7"
        assert server.written == [
            ("POST", f"{below}/notes", {"text": "it's <b>good</b>\nindeed"}),
            ("PATCH", f"{below}/tags", {"add": ["good", "data:x"], "remove": []}),
            ("PUT", f"{below}/star", {}),
        ]
        browser.click("remove…")
        browser.waits_for(f"bequeath trial note -e {made.ident} --remove 1 7", "dialog")
        done(browser, "remove")
        browser.waits_for("No notes.")
        browser.click("unstar…")
        browser.waits_for(f"bequeath trial star -e {made.ident} --off 7", "dialog")
        done(browser, "unstar")
        assert [one[:2] for one in server.written[3:]] == [
            ("DELETE", f"{below}/notes/1"),
            ("DELETE", f"{below}/star"),
        ]
        # A tag leads to the trials that have it, which the page finds by itself.
        browser.one("a.tag").click()
        browser.waits_for("1 of 40 trials")
        assert query(browser)["where"] in ("tag=data:x", "tag=good")
        assert not any("where" in path for path in server.asked if "/api/" in path)
        assert markup(browser) == 0
        assert browser.faults() == []


def test_marked_trials_are_tagged_together_and_found_by_star(browser: Browser) -> None:
    made = MadeSearch(40)
    made.trials[3].starred = True
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/trials?marked=3,5")
        browser.waits_for("40 trials")
        browser.click("tags…")
        typed(browser, "dialog input", "pair")
        browser.waits_for(f"bequeath trial tag -e {made.ident} 3 pair", "dialog")
        browser.waits_for(f"bequeath trial tag -e {made.ident} 5 pair", "dialog")
        done(browser, "change")
        assert [made.trials[one].tags for one in (3, 5)] == [("pair",)] * 2
        browser.open(f"{server.url}e/{made.ident}/trials?where=tag=pair")
        browser.waits_for("2 of 40 trials")
        assert [one.text for one in browser.all(".vbody .tag")] == ["pair"] * 2
        browser.click("☆ starred")
        browser.waits_for("1 of 40 trials")
        assert query(browser)["where"] == "starred=true"
        browser.picture("starred-trials")
        assert browser.faults() == []


def test_an_experiment_is_noted_on_its_overview(browser: Browser) -> None:
    made = MadeSearch(40)
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}")
        browser.waits_for("dataset:digits")
        browser.click("note…")
        typed(browser, "dialog textarea", "for the paper")
        browser.waits_for(f"bequeath experiment note -e {made.ident} 'for the paper'", "dialog")
        done(browser, "write")
        browser.waits_for("for the paper", ".notes")
        assert server.written[0][1] == f"/experiments/{made.ident}/notes"
        assert complaints(browser) == []


def others(made: MadeSearch) -> list[ExperimentListing]:
    """Three seeds of one name, and one that is better the less it is."""
    one = made.listing()
    found = [
        dataclasses.replace(
            one, id=f"seeds-{n}", name="seeds", seed=n, best_value=value, tuner="Random", tags=()
        )
        for n, value in ((1, 0.5), (2, 0.7), (3, 0.65))
    ]
    return [*found, dataclasses.replace(found[0], id="loss-1", dataset="", tags=("<i>x</i>",))]


def rows(browser: Browser) -> list[str]:
    return [one.text for one in browser.all(".board table:not(.small) tbody tr th a")]


def test_boards_are_grouped_filtered_and_starred_by_click(browser: Browser) -> None:
    made = MadeSearch(40)
    with PageServer(made) as server:
        server.others = others(made)
        browser.open(f"{server.url}leaderboard")
        browser.waits_for("data set digits", ".board")
        browser.waits_for("without a data set")
        assert rows(browser)[:4] == ["digits-evolution", "seeds", "seeds", "seeds"]
        browser.waits_for("0.65", "table.small")  # the median of three seeds
        browser.waits_for("bequeath leaderboard --group dataset", "main")
        browser.picture("leaderboard")
        assert markup(browser) == 0
        assert complaints(browser) == []
        browser.run(
            "const box = document.querySelector('select'); box.value = 'tuner';"
            "box.dispatchEvent(new Event('change', {bubbles: true}))"
        )
        browser.waits_for("tuner Random", "main")
        assert query(browser) == {"group": "tuner"}
        browser.open(f"{server.url}leaderboard?group=tag&name=evolution")
        browser.waits_for("tag dataset:digits", ".board")
        browser.waits_for("bequeath leaderboard --group tag --name evolution", "main")
        assert rows(browser) == ["digits-evolution"]
        star = browser.one("button.star")
        assert star.get_attribute("title") == f"bequeath experiment star {made.ident}"
        star.click()
        browser.until(lambda: browser.one("button.star").text == "★", "it has a star")
        assert server.written == [("PUT", f"/experiments/{made.ident}/star", {})]
        browser.open(f"{server.url}leaderboard?starred=true&group=none")
        browser.waits_for("all experiments", ".board")
        assert rows(browser) == ["digits-evolution"]
        browser.open(f"{server.url}leaderboard?name=nothing")
        browser.waits_for("No experiment that is meant")
        assert browser.faults() == []
        assert all(most == 1 for most in server.most_at_once.values())


def test_hostile_notes_stay_texts_and_a_reader_has_no_buttons(browser: Browser) -> None:
    made = MadeSearch(40, hostile=True)
    with PageServer(made, scope="read") as server:
        for page in (f"e/{made.ident}", f"e/{made.ident}/t/0"):
            browser.open(f"{server.url}{page}")
            browser.waits_for("<script>alert(1)</script>", ".notes")
            browser.waits_for("gnp.⟨U+202E⟩gpj.exe⟨U+2066⟩⟨U+200B⟩", ".notes")
            assert markup(browser) == 0
            words = {one.text for one in browser.all("button")}
            assert not words & {"note…", "tags…", "star…", "unstar…", "remove…"}
        browser.open(f"{server.url}leaderboard")
        browser.waits_for("data set <b>digits</b>", ".board")
        assert browser.all("button.star") == []
        assert markup(browser) == 0
        assert "owned" not in browser.driver.title
        assert browser.faults() == []


def test_a_phone_needs_no_scrolling_sideways_for_boards(browser: Browser) -> None:
    made = MadeSearch(40)
    with PageServer(made) as server:
        server.others = others(made)
        browser.size(390, 844, phone=True)
        browser.open(f"{server.url}leaderboard")
        browser.waits_for("data set digits", ".board")
        browser.picture("phone-leaderboard")
        assert browser.run("return document.documentElement.scrollWidth") <= 390
