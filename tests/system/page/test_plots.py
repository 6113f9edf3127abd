"""The page of plots over a real server and real stores, in a real browser."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Browser
from tests.support.lengths import every, first
from tests.support.made_store import Told, made_store
from tests.support.web_server import WebServer
from tests.system.page.test_hostile import markup
from tests.system.page.test_pages import complaints
from tests.unit.queries.evolution import evolve, make_folder

pytestmark = pytest.mark.needs("chromium")

FRONTS = ("pareto", "hypervolume")
KINDS = ("importance", "slice", "contour", "parallel", *FRONTS, "timeline", "slots")

#: What is to be seen once a plot is drawn, of an experiment with results and of one without.
SEEN = {
    "importance": ("of the variance of results", "Nothing can be judged yet."),
    "slice": ("medians", "No results with parameters that differ."),
    "contour": ("the best places", "No results over two parameters."),
    "parallel": ("the best trials", "No results with parameters that differ."),
    "pareto": ("beaten by no other", "No trial has a number for each of these."),
    "hypervolume": ("The front reaches", "No trial is better than the reference in each of these."),
    "timeline": ("the newest attempts", "No attempt has started yet."),
    "slots": ("what was in the way", ""),
}
TWO = "&objectives=" + '["default:maximize","latency:minimize"]'.replace('"', "%22")
EVIL = "<img src=x onerror=document.title='owned'>\u202egpj $(id)"


def hostile(many: int) -> Iterator[Told]:
    draw = random.Random(5)
    for at in range(many):
        genes = {f"blocks[{gene}].x": draw.random() for gene in range(60)}
        kind = draw.choice(["<b>bold</b>", "\u202egnp", "x" * 3_000])
        own = {EVIL: draw.randint(1, 90), "kind": kind, **genes}
        if at % 3:
            own["conditional"] = 10 ** draw.uniform(-5, 0)
        yield own, {"default": own[EVIL] + draw.random(), "latency": draw.random(), EVIL: at}, None


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("plots") / "home"
    evolve(make_folder(base, id="evolved-abc123"), 120)
    made_store(base, hostile(60), id="hostile-abc123", name=EVIL)
    made_store(base, [({"a": 1}, {"default": 1.0, "latency": 2.0}, None)], id="single-abc123")
    made_store(base, [], id="nothing-abc123")
    return base


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[WebServer]:
    server = WebServer(home, home.parent / "state")
    yield server
    server.end()


@pytest.fixture
def base(browser: Browser, server: WebServer) -> str:
    browser.open(server.command("web", "--link"))
    browser.until(lambda: browser.all("main h1"), "the list")
    return f"http://{server.host}:{server.port}/"


def opened(browser: Browser, base: str, experiment: str, kind: str, more: str = "") -> None:
    browser.open(f"{base}e/{experiment}/plots?kind={kind}{more}")
    browser.until(
        lambda: browser.all("section.panel") and "Computing" not in browser.text("main"), kind, 170
    )


@pytest.mark.parametrize("kind", every(5, KINDS))
def test_a_plot_is_drawn_from_what_the_route_answers(
    browser: Browser, server: WebServer, base: str, kind: str
) -> None:
    more = TWO if kind in FRONTS else ""
    for name in ("evolved-abc123", "hostile-abc123"):
        if kind in FRONTS and name == "evolved-abc123":
            continue  # it has one objective
        opened(browser, base, name, kind, more)
        browser.waits_for(SEEN[kind][0])
        if kind != "importance":
            assert painted(browser) > 500
        browser.picture(f"plots-{kind}-{name.partition('-')[0]}")
        assert markup(browser) == 0
        assert browser.driver.title != "owned"
        assert browser.faults() == []
    route = f"/experiments/hostile-abc123/plots/{kind}"
    query = "?objectives=default:maximize&objectives=latency:minimize" if more else ""
    told = server.get(route + query)
    seen = browser.text("main")
    if kind == "importance":
        assert f"{told['fitted']} trials" in seen
        shown = [one.text for one in browser.all("ul.importance bdi")]
        assert len(shown) == len(told["judged"]) == 40
        assert told["judged"][0]["name"] == EVIL
        assert shown[0] == EVIL.replace("\u202e", "⟨U+202E⟩")
        assert "23 parameters left out" in seen
    if kind == "pareto":
        assert f"{told['on_front']} of 60 trials" in seen
    if kind == "parallel":
        assert "51 parameters left out" in seen


def painted(browser: Browser) -> int:
    """Pixels of the first canvas that are not blank."""
    return int(
        browser.run(
            "const one = document.querySelector('main canvas');"
            "const {data} = one.getContext('2d').getImageData(0, 0, one.width, one.height);"
            "let many = 0; for (let at = 3; at < data.length; at += 4) many += data[at] > 0;"
            "return many"
        )
    )


@pytest.mark.parametrize("name", ["nothing-abc123", "single-abc123"])
@pytest.mark.parametrize("kind", first(2, KINDS))
def test_what_is_not_there_yet_is_said(browser: Browser, base: str, kind: str, name: str) -> None:
    some = name == "single-abc123"
    if kind in FRONTS and not some:
        opened(browser, base, name, kind)
        browser.waits_for("Choose two objectives or more.")
    else:
        opened(browser, base, name, kind, TWO if kind in FRONTS else "")
        there = kind == "slots" or (some and kind in ("pareto", "timeline"))
        browser.waits_for(SEEN[kind][0 if there else 1])
    assert browser.faults() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plots_are_accessible(browser: Browser, base: str, theme: str) -> None:
    browser.theme(theme)
    found = {}
    for kind in KINDS:
        opened(browser, base, "hostile-abc123", kind, TWO if kind in FRONTS else "")
        browser.waits_for(SEEN[kind][0])
        for one in browser.all("details.rows > summary"):
            one.click()
        found[kind] = complaints(browser)
    assert {kind: one for kind, one in found.items() if one} == {}


@pytest.mark.parametrize("kind", first(2, KINDS))
def test_plots_fit_a_phone(browser: Browser, base: str, kind: str) -> None:
    browser.size(390, 844, phone=True)
    opened(browser, base, "hostile-abc123", kind, TWO if kind in FRONTS else "")
    browser.waits_for(SEEN[kind][0])
    browser.picture(f"phone-plots-{kind}")
    assert browser.run("return document.documentElement.scrollWidth") <= 390


def test_plots_are_chosen_by_keys_and_selects(
    browser: Browser, server: WebServer, base: str
) -> None:
    name = "evolved-abc123"
    browser.open(f"{base}e/{name}")
    browser.waits_for("how trials ended")
    browser.keys("g", "p")
    browser.waits_for("of the variance of results", limit_s=170)
    assert browser.driver.current_url == f"{base}e/{name}/plots"
    opened(browser, base, name, "contour")
    pick(browser, "x", "act")
    browser.until(lambda: "x=act" in browser.driver.current_url, "the address")
    browser.waits_for("--x act", ".command code")
    link = browser.one("a[download]").get_attribute("href")
    assert link is not None
    path = link.partition("/api/v1")[2]
    image = server.ask("GET", path)
    assert image.body.startswith(b"\x89PNG")
    told = server.get(path.replace("/pictures/", "/plots/"))
    assert told["x"]["name"] == "act"

    # The front wants two: the first is kept until there is a second.
    opened(browser, base, "hostile-abc123", "pareto")
    pick(browser, "default", "maximize")
    pick(browser, "latency", "minimize")
    browser.waits_for("beaten by no other", limit_s=170)
    assert browser.faults() == []

    # Zoom of the timeline, by keys in the picture.
    opened(browser, base, name, "timeline")
    browser.until(  # the first picture is as wide as any; the next one as wide as its place
        lambda: browser.run(
            "const one = document.querySelector('main canvas');"
            "return Math.abs(one.width / devicePixelRatio - one.parentElement.clientWidth) <= 1"
        ),
        "its width",
    )
    before = browser.run("return document.querySelector('main canvas').toDataURL()")
    browser.run("document.querySelector('main canvas').focus()")
    browser.keys("+")
    browser.until(
        lambda: browser.run("return document.querySelector('main canvas').toDataURL()") != before,
        "the zoom",
    )
    browser.keys("0")
    browser.until(
        lambda: browser.run("return document.querySelector('main canvas').toDataURL()") == before,
        "all of it",
    )


def pick(browser: Browser, label: str, value: str) -> None:
    """Choose a word of a select by its label."""
    browser.run(
        "const [label, value] = arguments;"
        "const one = [...document.querySelectorAll('label.choose')]"
        ".find((each) => each.firstChild.textContent.trim() === label).querySelector('select');"
        "one.value = value; one.dispatchEvent(new Event('change', {bubbles: true}))",
        label,
        value,
    )


def test_an_error_is_said_with_a_way_back(browser: Browser, base: str) -> None:
    opened_with = f"{base}e/evolved-abc123/plots?kind=contour&x=nope"
    browser.open(opened_with)
    browser.waits_for("trials do not differ in a parameter 'nope'", limit_s=170)
    browser.click("Choose anew", "a")
    browser.waits_for("the best places", limit_s=170)
    console = browser.faults()
    assert all("400" in one for one in console)


def test_the_numbers_of_page_and_picture_are_the_same(home: Path, server: WebServer) -> None:
    """The route answers what the command prints, which is what the PNG is drawn from."""
    route: dict[str, Any] = server.get("/experiments/evolved-abc123/plots/contour?x=lr&y=width")
    words = ("plot", "contour", "evolved-abc123", "--x", "lr", "--y", "width", "--json")
    assert json.loads(server.command(*words)) == route
