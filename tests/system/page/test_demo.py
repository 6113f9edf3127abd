"""A trial's model is asked in the browser: a digit is drawn, and the answer stands beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains

from dispatcher.experiments.handle import ExperimentHandle
from tests.support.browser import Browser
from tests.support.page_server import PageServer
from tests.support.processes import end_processes_of
from tests.support.trained_digits import train_digits
from tests.support.web_server import WebServer
from tests.system.page.conftest import search_of
from tests.system.page.test_pages import complaints

pytestmark = pytest.mark.needs("chromium")


def field(name: str, kind: str, **more: Any) -> dict[str, Any]:
    usual = {
        "label": "", "default": None, "minimum": None, "maximum": None, "step": None,
        "width": 28, "height": 28,
    }  # fmt: skip
    return {"name": name, "kind": kind, **usual, **more}


INPUTS = [
    field("rate", "number", label="learning <b>rate</b>", default=0.5, maximum=1.0),
    field("words", "text", default="it's"),
    field("photo", "image"),
    field("digit", "drawing", width=4, height=2),
]


def draw(browser: Browser, *strokes: tuple[int, int, int, int]) -> None:
    """Draw lines on the canvas: from a point, from its middle, by so many pixels."""
    canvas = browser.one(".drawing canvas")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    for x, y, across, down in strokes:
        hand = ActionChains(browser.driver, duration=20)
        hand.move_to_element_with_offset(canvas, x, y).click_and_hold()
        hand.move_by_offset(across // 2, down // 2).move_by_offset(
            across - across // 2, down - down // 2
        )
        hand.release().perform()


def sent(server: PageServer) -> list[Any]:
    return [body["request"] for _, path, body in server.written if path.endswith("/infer")]


def test_numbers_texts_files_and_drawings_are_sent(browser: Browser, tmp_path: Path) -> None:
    made = search_of(400)
    (tmp_path / "photo.png").write_bytes(b"\x89PNG" + bytes(range(256)))
    (tmp_path / "large.png").write_bytes(b"x" * 1_500_000)
    best = made.best()
    assert best is not None
    with PageServer(made) as server:
        server.inputs = INPUTS
        server.model = lambda request: {
            "answer": "<img src=x onerror=alert(1)>\u202e", "why": "<b>",
            "scores": {f"<i>{n}</i>": n / 300 for n in range(25)},
        }  # fmt: skip
        browser.open(f"{server.url}e/{made.ident}/t/{best.trial}")
        browser.waits_for("ask the model")
        browser.waits_for("learning <b>rate</b>", ".demo")
        browser.waits_for("missing: photo, digit", ".demo")
        files = browser.all(".demo input[type=file]")
        files[0].send_keys(str(tmp_path / "large.png"))
        browser.waits_for("a file has 1.4 MB at most", ".demo")
        files[0].send_keys(str(tmp_path / "photo.png"))
        browser.waits_for("missing: digit", ".demo")
        assert sent(server) == []
        draw(browser, (-120, 0, 100, 0))  # the left half of the upper and the lower row
        browser.until(lambda: "missing" not in browser.text(".demo"), "nothing is missing")
        browser.click("ask", ".demo button")
        browser.waits_for("<img src=x onerror=alert(1)>⟨U+202E⟩", ".said")
        (request,) = sent(server)
        assert request["rate"] == 0.5
        assert request["words"] == "it's"
        assert request["photo"]["base64"].startswith("iVBORwAB")
        rows = request["digit"]
        assert [len(row) for row in rows] == [4, 4]
        assert all(row[0] > 0.02 and row[1] > 0.02 and row[3] == 0 for row in rows)
        assert len(browser.all(".scores tr")) == 20
        browser.waits_for("The highest 20 of 25")
        browser.waits_for('"why": "<b>"', ".answer")
        browser.waits_for("--number rate=0.5 --text 'words=it'\\''s' --image photo=FILE", ".demo")
        browser.picture("demo-fields")
        assert complaints(browser) == []
        assert browser.faults() == []


def test_a_request_may_be_any_json_and_a_reader_may_not_ask(browser: Browser) -> None:
    made = search_of(400)
    best = made.best()
    assert best is not None
    with PageServer(made) as server:
        server.model = lambda request: [request, "NaN", 12345678901234567]
        browser.open(f"{server.url}e/{made.ident}/t/{best.trial}")
        browser.waits_for("request, as JSON", ".demo")
        box = browser.one(".demo textarea")
        for text, fault in (("[1]", "a request is an object"), ('{"x": 12345678901234567}', "")):
            browser.run(
                "const [box, text] = arguments; box.value = text;"
                "box.dispatchEvent(new Event('input', {bubbles: true}))",
                box,
                text,
            )
            if fault:
                browser.waits_for(fault, ".demo")
                assert not browser.one(".demo button[type=submit]").is_enabled()
        browser.until(lambda: not browser.all(".demo .warn"), "the text is read")
        browser.click("ask", ".demo button")
        browser.waits_for('"NaN",\n  12345678901234567', ".answer")
        assert sent(server) == [{"x": 12345678901234567}]
        assert browser.faults() == []
    with PageServer(made, scope="read") as server:
        server.model = lambda request: 1
        browser.open(f"{server.url}e/{made.ident}/t/{best.trial}")
        browser.waits_for("which a link that only reads may not")
        assert browser.all(".demo") == []
        assert browser.faults() == []
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/t/{best.trial}")
        browser.waits_for("these trials have no demo")
        assert browser.faults() == []


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExperimentHandle]:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    handle = train_digits(tmp_path_factory.mktemp("digits"))
    yield handle
    end_processes_of(handle.folder)


def test_a_digit_is_drawn_and_read(
    browser: Browser, digits: ExperimentHandle, tmp_path: Path
) -> None:
    """The real server, a real experiment that is over, and a network of it."""
    server = WebServer(digits.folder.parent, tmp_path / "state")
    try:
        browser.open(server.link)
        browser.waits_for(digits.id)
        best = digits.leaders(1).trials[0]
        browser.open(f"http://{server.host}:{server.port}/e/{digits.id}/t/{best.id}")
        browser.waits_for("Draw, and the model answers.", limit_s=60)
        draw(browser, (0, -100, 0, 200))
        browser.until(lambda: browser.text(".said"), "an answer", 120)
        one = scores(browser)
        assert len(one) == 10
        assert browser.text(".said").strip() == next(iter(one))
        assert sum(map(float, one.values())) == pytest.approx(1.0, abs=0.02)
        browser.picture("demo-digit")
        browser.click("clear", ".drawing button")
        browser.until(lambda: not browser.text(".said"), "the answer goes with the drawing")
        draw(browser, (-60, -90, 120, 0), (60, -90, 0, 180), (60, 90, -120, 0), (-60, 90, 0, -180))
        browser.until(lambda: browser.text(".said"), "another answer", 60)
        browser.until(lambda: scores(browser) != one, "other scores")
        assert "loading the model" not in browser.text(".answer")  # it was warm
        assert browser.faults() == []
        assert '"what":"infer"' in server.log.read_text()
    finally:
        server.end()


def scores(browser: Browser) -> dict[str, str]:
    found = browser.run(
        "return [...document.querySelectorAll('.scores tr')]"
        ".map((row) => [row.cells[0].innerText, row.cells[2].innerText])"
    )
    return dict(found)
