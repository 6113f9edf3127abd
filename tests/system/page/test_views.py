"""What single pages say, against what is known of the search here: costs, gains, hosts, axes."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from tests.support.browser import Browser
from tests.support.made_search import MadeSearch
from tests.support.page_server import PageServer
from tests.system.page.conftest import search_of
from tests.system.page.test_annotations import done
from tests.system.page.test_hands import query

pytestmark = pytest.mark.needs("chromium")

_HIDE = """
Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});
document.dispatchEvent(new Event('visibilitychange'));
"""

_CHOOSE = """
const [label, value] = arguments;
const one = [...document.querySelectorAll('label.choose')]
  .find((each) => each.firstChild.textContent.trim() === label).querySelector('select');
one.value = value; one.dispatchEvent(new Event('change', {bubbles: true}));
"""


def spelt(seconds: float) -> set[str]:
    """A duration of minutes or hours as the page writes it; two where it is hard to round."""
    found = set()
    for whole in {math.floor(seconds + half) for half in (0.49, 0.51)}:
        minutes, rest = divmod(whole, 60)
        hours, more = divmod(minutes, 60)
        found.add(f"{hours} h {more:02} m" if hours else f"{minutes} m {rest:02} s")
    return found


def cost(search: MadeSearch, trials: list[int]) -> float:
    """Seconds that trials which are over ran."""
    rows = [search.trials[one] for one in trials]
    return sum(one.ended - one.started for one in rows if one.ended and one.started)


def test_the_line_of_the_best_has_its_cost_beside_that_of_the_search(browser: Browser) -> None:
    """Mutation: a line without its first trial, the cost of the best alone."""
    search = search_of(400)
    best = search.best()
    assert best is not None
    line = [best.trial]
    while (parent := search.trials[line[0]].parent) is not None:
        line.insert(0, parent)
    assert len(line) > 2
    every = [one.trial for one in search.trials]
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}")
        browser.waits_for(f"This line of {len(line)} trials cost")
        text = browser.text("section[aria-label=best]")
        assert any(
            f"cost {mine}; the whole search {all_of_it}." in text
            for mine in spelt(cost(search, line))
            for all_of_it in spelt(cost(search, every))
        ), text
        for one in (line[0], line[-1]):
            assert browser.all(f"section[aria-label=best] a[href$='/t/{one}']")


def gains(search: MadeSearch) -> dict[str, list[float]]:
    """By kind of change, what the children that have it gained over their parents, in order."""
    found: dict[str, list[float]] = {}
    for child in search.trials:
        parent = None if child.parent is None else search.trials[child.parent]
        if parent is None or child.value is None or parent.value is None:
            continue
        for name, now in child.parameters.items():
            before = parent.parameters[name]
            if now == before:
                continue
            way = f"→ {now}" if isinstance(now, str) else "↑" if now > before else "↓"
            found.setdefault(f"{name} {way}", []).append(child.value - parent.value)
    return {kind: sorted(all_of) for kind, all_of in found.items() if len(all_of) >= 3}


def test_the_changes_that_made_children_better_are_those_with_the_highest_gain(
    browser: Browser,
) -> None:
    """Mutation: the mean of few, a change that is counted where it was inherited."""
    search = search_of(400)
    known = gains(search)
    best_first = sorted(known, key=lambda kind: -known[kind][len(known[kind]) // 2])
    assert len(best_first) > 8
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}")
        browser.until(lambda: len(browser.all("ul.gains li")) == 8, "eight kinds of change")
        for row, kind in zip(
            browser.all("ul.gains li"), [*best_first[:4], *best_first[-4:]], strict=True
        ):
            words = " ".join(row.text.split())
            assert words.startswith(kind), (words, kind)
            assert words.endswith(f"({len(known[kind])})"), words


def test_hosts_have_their_gpus_with_their_use_and_their_trials(browser: Browser) -> None:
    search = search_of(400)
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}/hosts")
        browser.waits_for("4 workers · 40 of 64 slots busy · 6 GPUs")
        browser.waits_for("NVIDIA A100 40GB", "section[aria-label='ssh/gpu1']")
        first = browser.text("section[aria-label='ssh/gpu1']")
        for words in ("GPU 0", "GPU 1", "92 %", "72 %", "64 °C", "310 W", "9.7 GB of 43 GB"):
            assert words in first, first
        silent = browser.text("section[aria-label='ssh/gpu4']")
        assert "left out for 42 s since trials 91 and 97 failed" in silent
        assert browser.all("section[aria-label='ssh/gpu4'] .devices") == []
        (device, *_) = server.search.snapshot()["devices"]
        link = browser.one(".devices a")
        assert link.text == str(device["trials"][0])
        link.click()
        browser.waits_for(f"Trial {device['trials'][0]}", "h1")
        browser.open(f"{server.url}e/{search.ident}/hosts")
        browser.waits_for("NVIDIA A100 40GB")
        server.lose_head()
        browser.waits_for("No head answers: which workers there are now is not known.")
        browser.waits_for("ssh/gpu1", "section[aria-label='where trials ran last']")
        assert browser.faults() == []


def test_the_lineage_goes_by_time_or_by_generation_in_three_colours(browser: Browser) -> None:
    """Mutation: an axis, or a colour, that is chosen and not drawn."""
    search = search_of(400)
    canvas = ".forest canvas"

    def drawn() -> Any:
        return browser.run("return document.querySelector(arguments[0]).toDataURL()", canvas)

    def settled() -> Any:
        """What is drawn, once two looks see the same."""
        return browser.until(lambda: (one := drawn()) == drawn() and one, "the picture stands")

    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}/lineage")
        browser.waits_for("460 trials")
        seen = {settled()}
        for label, value, address in (
            ("x", "generation", {"x": "generation"}),
            ("colour", "gain", {"x": "generation", "colour": "gain"}),
            ("colour", "state", {"x": "generation", "colour": "state"}),
            ("x", "time", {"colour": "state"}),
        ):
            browser.run(_CHOOSE, label, value)
            browser.until(lambda wanted=address: query(browser) == wanted, f"{label} {value}")
            browser.until(lambda: drawn() not in seen, f"{label} {value} is drawn")
            seen.add(settled())
            browser.picture(f"lineage-by-{value}")
        browser.open(f"{server.url}e/{search.ident}/lineage?x=generation")
        browser.waits_for("460 trials")
        label = browser.one(canvas).get_attribute("aria-label") or ""
        assert "generation from left to right" in label
        assert browser.faults() == []


def test_a_clone_begins_with_the_parameters_and_without_the_weights(browser: Browser) -> None:
    search = search_of(400)
    best = search.best()
    assert best is not None
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}/t/{best.trial}")
        browser.click("clone…")
        browser.waits_for(f"A clone of trial {best.trial}", "dialog")
        browser.waits_for("Nothing differs.", "dialog")
        browser.waits_for(f"bequeath trial submit -e {search.ident} ", "dialog")
        browser.picture("dialog-clone")
        browser.click("submit", "dialog button[type=submit]")
        browser.waits_for("It is trial", "dialog")
        assert server.written == [
            ("POST", f"/experiments/{search.ident}/trials", {"parameters": best.parameters})
        ]


def test_weights_are_pinned_and_unpinned_by_click(browser: Browser) -> None:
    search = MadeSearch(40)
    best = search.best()
    assert best is not None
    path = f"/experiments/{search.ident}/trials/{best.trial}/pin"
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}/t/{best.trial}")
        for button, word, pinned in (("pin…", "pin", True), ("unpin…", "unpin", False)):
            browser.click(button)
            browser.waits_for(
                f"bequeath weights {word} -e {search.ident} {best.trial}", "dialog .command"
            )
            done(browser, word)
            assert best.pinned is pinned
            browser.until(lambda is_so=pinned: ("pinned" in tags(browser)) is is_so, word)
        assert [one[:2] for one in server.written] == [("PUT", path), ("DELETE", path)]
        assert browser.faults() == []


def tags(browser: Browser) -> list[str]:
    """The words beside a trial's name."""
    return [one.text for one in browser.all("main .bar .tag")]


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "questions"])
def test_an_experiment_that_is_deleted_under_its_page_leaves_one_sentence(
    browser: Browser, streams: bool
) -> None:
    """And nothing is asked again. Mutations: a page that goes on asking; advice to resume it."""
    search = search_of(400)
    with PageServer(search) as server:
        server.streams = streams
        browser.open(f"{server.url}e/{search.ident}/trials")
        browser.waits_for("460 trials")
        browser.waits_for("live" if streams else "live (asking)")
        server.delete()
        if not streams:
            server.tell(0)
        browser.waits_for(
            "the experiment was deleted" if streams else "no experiment goes by", "main"
        )
        browser.waits_for("All experiments", "main a")
        assert not browser.all(".gone")
        assert not browser.all(".vrow")
        assert not browser.all(".why")
        asked = len(server.asked)
        browser.run(_HIDE, True)
        browser.run(_HIDE, False)
        browser.run("document.querySelector('main a').click()")
        browser.waits_for("Experiments", "h1")
        again = [one for one in server.asked[asked:] if f"/experiments/{search.ident}" in one]
        assert again == []


def test_who_waits_stands_at_what_runs(browser: Browser) -> None:
    """Mutation: a group for each who waits; a parent that is not the one waited for."""
    search = search_of(400)
    waiting = Counter(one.parent for one in search.trials if one.state == "blocked")
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}/waits")
        browser.waits_for("which has run", "ul.waits")
        seen = {
            int(row.find_element("css selector", ".for a b").text): int(
                row.find_element("css selector", ".by b").text
            )
            for row in browser.all("ul.waits li.wait")
        }
        assert seen == dict(waiting)
        assert browser.faults() == []


def test_what_differs_stands_beside_curves_and_logs(browser: Browser) -> None:
    search = search_of(400)
    best = search.best()
    assert best is not None
    assert best.parent is not None
    parent = search.trials[best.parent]
    differs = {name for name, one in best.parameters.items() if one != parent.parameters[name]}
    with PageServer(search, log=b"epoch 1\nlast line\n") as server:
        browser.open(f"{server.url}e/{search.ident}/compare?trials={best.trial},{parent.trial}")
        browser.waits_for(f"common ancestor: {parent.trial}")
        rows = browser.all("table.compare tbody th:not(.quiet)")
        assert {row.text for row in rows} == differs
        browser.until(
            lambda: (
                [one.text.endswith("last line") for one in browser.all(".side-by-side .log pre")]
                == [True, True]
            ),
            "the logs of both",
        )
        browser.one("section[aria-label=curves] canvas")
        browser.one("main input[type=checkbox]").click()
        browser.until(
            lambda: len(browser.all("table.compare tbody th:not(.quiet)")) == len(best.parameters),
            "all parameters",
        )
        assert query(browser)["all"] == "1"
        assert browser.faults() == []


def test_a_theme_that_was_chosen_stays(browser: Browser) -> None:
    chosen = "return document.documentElement.dataset.theme ?? ''"
    search = search_of(1)
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}")
        browser.waits_for("how trials ended")
        for word in ("light", "dark"):
            browser.one("button[title^='light, dark']").click()
            assert browser.run(chosen) == word
        dark = browser.run("return getComputedStyle(document.documentElement).backgroundColor")
        browser.open(f"{server.url}leaderboard")
        browser.waits_for("Leaderboard", "h1")
        assert browser.run(chosen) == "dark"
        assert (
            browser.run("return getComputedStyle(document.documentElement).backgroundColor") == dark
        )
        browser.one("button[title^='light, dark']").click()
        assert browser.run(chosen) == ""
        light = browser.run("return getComputedStyle(document.documentElement).backgroundColor")
        assert light != dark
