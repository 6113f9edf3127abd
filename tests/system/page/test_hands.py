"""What one does: with keys, with a mouse, with buttons, each beside its command."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.support.browser import Browser
from tests.support.made_search import MadeSearch
from tests.support.page_server import PageServer
from tests.system.page.conftest import search_of

pytestmark = pytest.mark.needs("chromium")


def query(browser: Browser) -> dict[str, str]:
    found = parse_qs(urlsplit(browser.driver.current_url).query)
    return {name: values[0] for name, values in found.items()}


def test_keys_go_everywhere_and_the_address_is_the_view(browser: Browser) -> None:
    made = search_of(400)
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}")
        browser.waits_for("how trials ended")
        browser.keys("g", "t")
        browser.waits_for("460 trials")
        browser.keys("/")
        browser.keys(*"outcome=failed", Keys.TAB)
        browser.until(
            lambda: query(browser).get("where") == "outcome=failed", "the condition in the address"
        )
        failed = made.tally("outcome")["failed"]
        browser.waits_for(f"{failed} of 460 trials")
        browser.one(".virtual").send_keys("j", "j", "x", "j", "x")
        browser.until(lambda: len(query(browser).get("marked", "").split(",")) == 2, "two marked")
        address = browser.driver.current_url
        browser.open(address)
        browser.waits_for(f"{failed} of 460 trials")
        assert browser.driver.current_url == address
        browser.one(".virtual").send_keys("c")
        browser.waits_for("what differs")
        browser.keys("g", "l")
        browser.waits_for("Wheel zooms")
        browser.keys("?")
        browser.until(lambda: browser.all("dialog[open]"), "the list of keys")
        browser.waits_for("mark for comparing", "dialog")
        browser.keys(Keys.ESCAPE)
        browser.until(lambda: not browser.all("dialog"), "the list of keys goes")
        assert browser.faults() == []


def test_the_table_sorts_filters_and_opens_by_keys(browser: Browser) -> None:
    made = search_of(10_000)
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/trials")
        browser.waits_for("10,060 trials")
        best = made.best()
        assert best is not None
        first = browser.one(".vbody .vrow [role=rowheader]").text
        assert first == str(best.trial)
        browser.click("lr", ".vhead button")
        browser.until(lambda: query(browser).get("sort") == "-lr", "the order in the address")
        cells = [one.text for one in browser.all(".vbody .vrow:first-child [role=gridcell]")]
        most = max(one.parameters["lr"] for one in made.trials)
        assert f"{most:.5g}" in cells
        browser.one(".virtual").send_keys(Keys.END)
        browser.until(lambda: browser.all(".vrow.at[aria-rowindex='10061']"), "the last row")
        assert len(browser.all(".vbody .vrow")) < 80
        trial = browser.one(".vrow.at [role=rowheader]").text
        browser.one(".virtual").send_keys(Keys.ENTER)
        browser.waits_for(f"Trial {trial}", "h1")


def test_a_condition_that_cannot_be_read_gets_its_place(browser: Browser) -> None:
    with PageServer(search_of(400)) as server:
        browser.open(f"{server.url}e/{server.search.ident}/trials?where=lr<")
        browser.waits_for("a value is missing after '<'")
        browser.waits_for("character 4")


def test_the_lineage_is_walked_zoomed_and_picked(browser: Browser) -> None:
    made = search_of(400)
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/lineage")
        browser.waits_for("460 trials")
        canvas = browser.one(".forest canvas")
        canvas.send_keys("j")
        browser.until(lambda: "pick" in query(browser), "a trial is picked")
        best = made.best()
        assert best is not None
        browser.open(f"{server.url}e/{made.ident}/lineage?pick={best.trial}")
        browser.waits_for(f"Trial {best.trial}", ".picked")
        browser.one(".forest canvas").send_keys(Keys.ARROW_LEFT)
        browser.until(lambda: query(browser)["pick"] == str(best.parent), "its parent is picked")
        browser.one(".forest canvas").send_keys("+", "+")
        browser.until(lambda: "view" in query(browser), "the part that is shown is in the address")
        ActionChains(browser.driver).scroll_from_origin(_over(browser), 0, -240).perform()
        browser.click("only its family")
        browser.until(lambda: query(browser).get("family") == str(best.parent), "only its family")
        browser.picture("lineage-family")
        assert browser.faults() == []


def _over(browser: Browser):  # type: ignore[no-untyped-def]
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    return ScrollOrigin.from_element(browser.one(".forest canvas"))


BUTTONS = [
    ("", "stop…", "stop", ("POST", "/stop", {"drain": False, "wait": False}), "bequeath stop ID"),
    ("", "kill…", "kill", ("POST", "/kill", {}), "bequeath kill ID"),
    (
        "/t/460",
        "kill…",
        "kill",
        ("POST", "/trials/kill", {"trials": [460]}),
        "bequeath trial kill -e ID 460",
    ),
    ("/checks", "verify", "", ("POST", "/verify", {}), "bequeath experiment verify ID"),
]


@pytest.mark.parametrize("page, button, word, written, command", BUTTONS)
def test_a_button_does_what_the_command_beside_it_does(
    browser: Browser,
    page: str,
    button: str,
    word: str,
    written: tuple[str, str, object],
    command: str,
) -> None:
    made = MadeSearch(460)
    made.add(state="running")
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}{page}")
        browser.until(
            lambda: any(one.text.startswith(button) for one in browser.all("button")), button
        )
        browser.click(button)
        browser.waits_for(command.replace("ID", made.ident), "dialog" if word else "main")
        if word:
            browser.picture(f"dialog-{word}{page.replace('/', '-')}")
            assert server.written == []
            browser.click(word, "dialog button[type=submit]")
        method, path, body = written
        browser.until(lambda: server.written, "it was asked for")
        assert server.written == [(method, f"/experiments/{made.ident}{path}", body)]
        if word:
            browser.waits_for("✓", "dialog")


def test_a_limit_is_changed_by_click(browser: Browser) -> None:
    with PageServer(search_of(400)) as server:
        browser.open(f"{server.url}e/{server.search.ident}")
        browser.waits_for("limits…")
        browser.click("limits…")
        browser.one("dialog input").send_keys("8")
        browser.waits_for(
            f"bequeath experiment update -e {server.search.ident} trialConcurrency 8", "dialog"
        )
        browser.click("change", "dialog button[type=submit]")
        browser.waits_for("trialConcurrency is 8", "dialog")
        assert server.written[0][2] == {"key": "trialConcurrency", "value": 8}


def test_a_cause_has_its_ways_out_beside_it(browser: Browser) -> None:
    """Links for all, changes by click for who may: with the command that does the same."""
    made = MadeSearch(40)
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/checks")
        browser.until(
            lambda: [one for one in browser.all(".why-text a") if one.text == "ssh/gpu4"], "a host"
        )
        browser.click("hosts", ".mends a")
        browser.waits_for("Hosts", "h1")
        made.why = (
            "LOOKAHEAD_FULL",
            "64 requests wait, as many as lookahead allows: 12 wait for 8",
        )
        server.tell()
        browser.click("raise lookahead to 128")
        browser.waits_for(f"bequeath experiment update -e {made.ident} lookahead 128", "dialog")
        browser.picture("dialog-lookahead")
        browser.click("change", "dialog button[type=submit]")
        browser.waits_for("lookahead is 128", "dialog")
        browser.click("close", "dialog button")
        assert [one[2] for one in server.written] == [{"key": "lookahead", "value": 128}]
        made.why = ("DISK_LOW", "/data has 1.2 GB free")
        server.tell()
        browser.click("free space…")
        browser.waits_for("The weights of 2 trials would go, 8.4 MB", "dialog")
        browser.click("remove", "dialog button[type=submit]")
        browser.waits_for("2 trials without weights now", "dialog")
        assert server.written[-1][:2] == ("POST", f"/experiments/{made.ident}/weights/gc")
        assert browser.faults() == []
    with PageServer(made, scope="read") as server:
        browser.open(f"{server.url}e/{made.ident}")
        browser.waits_for("hosts", ".mends")
        assert browser.all(".mends button") == []


def test_links_that_only_read_are_made_and_taken_back_by_click(browser: Browser) -> None:
    made = search_of(1)
    with PageServer(made) as server:
        browser.open(server.url)
        browser.click("settings", "a")
        browser.waits_for("There are none.")
        browser.click("make one…")
        browser.one("dialog input[type=text]").send_keys("ann")
        browser.click("it reads logs", "dialog label")
        browser.waits_for("bequeath web --share ann --with-logs", "dialog")
        browser.click("make it", "dialog button[type=submit]")
        browser.waits_for(f"{server.url}login?share={'t' * 43}", "dialog")
        browser.picture("dialog-share")
        browser.click("close", "dialog button")
        browser.waits_for("with logs and files", "table")
        browser.picture("settings")
        assert server.written == [
            ("POST", "/shares", {"name": "ann", "days": 7, "logs": True}),
        ]
        browser.click("take back…")
        browser.waits_for("bequeath web --revoke ann", "dialog")
        browser.click("take back", "dialog button[type=submit]")
        browser.waits_for("counts no more", "dialog")
        browser.click("close", "dialog button")
        browser.waits_for("There are none.")
        browser.click("new token…")
        browser.waits_for("bequeath web --new-token", "dialog")
        assert browser.faults() == []
    with PageServer(made, scope="read") as server:
        browser.open(server.url)
        browser.waits_for("read only")
        assert not [one for one in browser.all("a") if one.text == "settings"]
        browser.open(f"{server.url}settings")
        browser.waits_for("Only the owner sees")
        assert "/api/v1/shares" not in server.asked


def test_small_curves_come_for_the_rows_in_sight(browser: Browser) -> None:
    """Mutation: all of them are asked for, or each by itself."""
    made = search_of(10_000)
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/trials")
        browser.until(lambda: len(browser.all("svg.spark path")) > 10, "curves of rows in sight")
        browser.picture("trials-curves")
        asked = [one for one in server.asked if "/curves?" in one]
        assert len(asked) <= 3
        assert max(one.count("%2C") + one.count(",") for one in asked) < 100
        browser.run("document.querySelector('.virtual').scrollTop = 100_000")
        browser.until(
            lambda: len([one for one in server.asked if "/curves?" in one]) > len(asked), "others"
        )
        browser.until(lambda: len(browser.all("svg.spark path")) > 10, "their curves")
        assert server.most_at_once[f"/api/v1/experiments/{made.ident}/curves"] == 1
        assert browser.faults() == []


def test_a_child_of_a_trial_begins_with_its_parameters_and_weights(browser: Browser) -> None:
    made = search_of(400)
    best = made.best()
    assert best is not None
    with PageServer(made) as server:
        browser.open(f"{server.url}e/{made.ident}/t/{best.trial}")
        browser.waits_for("child…")
        browser.click("child…")
        browser.waits_for("It begins with the weights", "dialog")
        text = browser.one("dialog textarea")
        given = str(text.get_attribute("value")).replace('"depth": ', '"depth": 1')
        browser.run(
            "const [box, text] = arguments; box.value = text;"
            "box.dispatchEvent(new Event('input', {bubbles: true}))", text, given
        )  # fmt: skip
        depth = best.parameters["depth"]
        browser.waits_for(f"depth {depth} → 1{depth}", "dialog")
        browser.picture("dialog-child")
        browser.click("submit", "dialog button[type=submit]")
        browser.waits_for("It is trial", "dialog")
        told = server.written[0][2]["parameters"]
        wanted = {
            **best.parameters,
            "depth": int(f"1{depth}"),
            "restore_path": f"trials/{best.trial}",
        }
        assert told == wanted


def test_a_link_that_only_reads_has_no_buttons_that_change(browser: Browser) -> None:
    with PageServer(search_of(400), scope="read") as server:
        browser.open(f"{server.url}e/{server.search.ident}")
        browser.waits_for("read only")
        browser.waits_for("how trials ended")
        words = {one.text for one in browser.all("button")}
        assert not words & {"stop…", "kill…", "limits…", "submit…", "resume…"}
