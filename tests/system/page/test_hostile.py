"""Texts of trials stay texts, however they are made; what is long is cut, with a link to it all."""

from __future__ import annotations

import pytest

from tests.support.browser import Browser
from tests.support.page_server import PageServer
from tests.system.page.conftest import search_of

pytestmark = pytest.mark.needs("chromium")

LOG = (
    b"<img src=x onerror=document.title='owned'>\n\x1b[31mred\x1b[0m \x1b]0;owned\x07plain\n"
    + b"y" * 5_000_000
    + "\n\u202egnp.exe\n".encode()
    + b"\xff\xfe not text\nlast line\n"
)


def markup(browser: Browser) -> int:
    """Elements that a text may have become."""
    return int(
        browser.run("return document.querySelectorAll('img, script:not([src]), i, iframe').length")
    )


@pytest.mark.parametrize(
    "page",
    [
        "",
        "/trials",
        "/lineage?pick=0",
        "/t/0",
        "/compare?trials=0,1",
        "/waits",
        "/hosts",
        "/checks",
    ],
)
def test_texts_stay_texts(browser: Browser, page: str) -> None:
    search = search_of(40, hostile=True)
    with PageServer(search, log=LOG) as server:
        browser.open(f"{server.url}e/{search.ident}{page}")
        browser.waits_for("<i>&amp;⟨U+202E⟩")
        browser.until(lambda: "Reading" not in browser.text("main"), "the data")
        if page == "/t/0":
            browser.waits_for("123,456".replace(",", "")[:6])
            browser.waits_for("<b>name</b>")
            browser.waits_for("gnp.⟨U+202E⟩gpj.exe⟨U+2066⟩⟨U+200B⟩")
            browser.waits_for("⟨ESC⟩[2J")
            browser.waits_for("last line", ".log pre")
            browser.waits_for("⟨U+202E⟩gnp.exe", ".log pre")
            browser.picture("hostile-trial")
        assert markup(browser) == 0
        assert "owned" not in browser.driver.title
        assert browser.faults() == []


def test_a_line_of_megabytes_is_cut_with_a_link_to_all_of_it(browser: Browser) -> None:
    search = search_of(40, hostile=True)
    with PageServer(search, log=b"first\n" + b"y" * 60_000 + b"\nlast\n") as server:
        browser.open(f"{server.url}e/{search.ident}/t/1")
        browser.waits_for("58,000 more characters", ".log")
        assert len(browser.text(".log pre")) < 4_000
        link = browser.one(".log .cut").get_attribute("href")
        assert link is not None
        assert "/log/stdout?attempt=1" in link


def test_whole_numbers_keep_all_of_their_digits(browser: Browser) -> None:
    search = search_of(40, hostile=True)
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}/t/0")
        browser.waits_for("huge")
        title = browser.run(
            "return [...document.querySelectorAll('tr')]"
            ".find((row) => row.querySelector('th')?.innerText === 'huge')"
            ".querySelector('td bdi').title"
        )
        assert title == "123456789012345678901234567890"


def test_hundreds_of_parameters_are_searched_and_chosen(browser: Browser) -> None:
    search = search_of(40, hostile=True)
    with PageServer(search) as server:
        browser.open(f"{server.url}e/{search.ident}/t/39")
        browser.waits_for("parameters")
        browser.one("input[aria-label='search parameters']").send_keys("blocks[77].gene5")
        browser.waits_for("467")
        browser.open(f"{server.url}e/{search.ident}/trials")
        browser.waits_for("100 trials")
        browser.one("details.menu summary").click()
        browser.one("input[aria-label='search columns']").send_keys("blocks[77].gene5")
        browser.waits_for("blocks[77].gene5", "details.menu")
        browser.one("details.menu li input").click()
        browser.waits_for("blocks[77].gene5", ".vhead")
