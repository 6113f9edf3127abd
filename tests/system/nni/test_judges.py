"""NNI 3.0's own Python client and page, which nobody of us wrote, see and steer our experiment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from dispatcher.folders.status import is_led
from tests.integration.cli.conftest import Place, place
from tests.integration.web.conftest import laid_down
from tests.support.browser import Browser
from tests.support.nni_port import NniPort
from tests.support.pages import python_blocks
from tests.support.trackers import python_of
from tests.system.page.conftest import pictures

__all__ = ["pictures", "place"]

CLIENT = Path(__file__).parents[2] / "support" / "nni_client.py"

#: The only strangers that its page would ask: for fonts. Our policy lets none of it happen.
FONTS = {"res.cdn.office.net", "res-1.cdn.office.net"}


def client(port: NniPort, wish: str) -> Any:
    """What NNI's client answers."""
    done = subprocess.run(
        [python_of("nni"), "-W", "ignore", CLIENT, str(port.port), wish],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def settings_of(place: Place) -> dict[str, Any]:
    """Our settings, as they are now."""
    settings: dict[str, Any] = json.loads(place("experiment", "show"))["settings"]
    return settings


@pytest.fixture
def served(place: Place) -> Iterator[NniPort]:
    """The port of an experiment of which two trials run, with NNI's own page."""
    environment = python_of("nni").parents[1]
    place("create", "experiment.yml")
    place.wait_until_running()
    port = NniPort(place.kept, place.folder / "state", "--port", "0", "--page", str(environment))
    yield port
    port.end()


def test_nnis_client_sees_what_ours_shows(place: Place, served: NniPort) -> None:
    place.go()
    place.wait_until(lambda: not is_led(place.experiment), "it is over")
    seen = client(served, "look")
    ours = place.trials()
    assert (seen["id"], seen["status"]) == (place.experiment.name, "DONE")
    assert [int(one["trialJobId"]) for one in seen["trials"]] == [one.id for one in ours]
    for one, ours_one in zip(seen["trials"], ours, strict=True):
        assert one["status"] == "SUCCEEDED"
        assert one["hyperParameters"][0]["parameters"] == {"n": ours_one.id}
        assert one["finalMetricData"][0]["data"] == ours_one.value
        assert ours_one.started_at is not None
        assert one["startTime"] == int(1000 * ours_one.started_at)
    assert seen["first"] == seen["trials"][0]
    assert seen["metrics"] == {str(one.id): [0.5, one.value] for one in ours}
    assert seen["one"] == [0.5, 0.0]
    assert seen["statistics"] == [{"trialJobStatus": "SUCCEEDED", "trialJobNumber": len(ours)}]
    assert [one["value"] for one in seen["results"]] == [one.value for one in ours]
    assert seen["metadata"]["status"] == "DONE"


def test_nnis_client_steers_and_stops(place: Place, served: NniPort) -> None:
    params = client(served, "steer")
    settings = settings_of(place)
    for key in ("trialConcurrency", "maxTrialNumber", "searchSpace"):
        assert params[key] == settings[key]
    assert (settings["trialConcurrency"], settings["maxTrialNumber"]) == (3, 5)
    assert settings["maxExperimentDuration"] == 10_800
    place.wait_until(lambda: place.trials()[0].outcome == "killed", "trial 0 is ended")
    assert client(served, "stop") == "stopped"
    assert not is_led(place.experiment), "its stop waits for our head"
    assert place.json("status")["experiment"]["status"] == "stopped"


def test_nnis_client_as_the_page_has_it(place: Place, served: NniPort) -> None:
    """The script of docs/from-nni.md."""
    (script,) = python_blocks("docs/from-nni.md")
    done = subprocess.run(
        [python_of("nni"), "-W", "ignore", "-c", script.replace("8080", str(served.port))],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "'trialJobStatus': 'RUNNING'" in done.stdout
    assert settings_of(place)["maxTrialNumber"] == 500


@pytest.fixture
def browser(pictures: Path) -> Iterator[Browser]:
    """A window in which nothing ran or came in that is not NNI's page."""
    one = Browser(pictures)
    yield one
    for fault in one.faults():
        assert "font" in fault, fault
    assert one.strangers() <= FONTS
    one.close()


@pytest.mark.needs("chromium")
def test_nnis_page_draws_and_changes_a_running_experiment(
    browser: Browser, place: Place, served: NniPort
) -> None:
    browser.open(served.link)
    browser.waits_for(place.experiment.name)
    browser.waits_for("RUNNING", ".status-text")
    browser.until(lambda: "2/6" in browser.text().replace("\n", ""), "two trials of six")
    browser.one(".trialConcurrency.show-params").click()
    field = browser.one(".trialConcurrency.edit-input input, input.trialConcurrency.edit-input")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("1")
    browser.one(".confirm").click()
    browser.waits_for("Successfully updated")
    assert settings_of(place)["trialConcurrency"] == 1
    browser.picture("nni-overview")

    browser.open(f"{served.link}detail")
    browser.waits_for("Trial jobs")
    browser.until(lambda: len(browser.all(".ms-DetailsRow")) == 2, "two trials")
    browser.waits_for("0.5 (LATEST)")
    browser.one("button[title=kill]:not([disabled])").click()
    browser.click("Yes")
    browser.waits_for("had been killed successfully")
    browser.click("Close")
    place.wait_until(lambda: place.trials()[0].outcome == "killed", "trial 0 is ended")
    # The page reads trials and then metrics, and breaks where a trial begins in between, as four
    # that take no time do: it is left meanwhile.
    browser.open("about:blank")
    place.go()
    place.wait_until(lambda: not is_led(place.experiment), "it is over")
    browser.open(f"{served.link}detail")
    browser.waits_for("SUCCEEDED", limit_s=60)
    browser.picture("nni-detail")


@pytest.mark.needs("chromium")
def test_nnis_page_draws_a_search_that_is_over(browser: Browser, tmp_path: Path) -> None:
    environment = python_of("nni").parents[1]
    folder = laid_down(tmp_path / "home", 150)  # beyond a hundred it asks for ranges
    port = NniPort(
        folder.parent, tmp_path / "state", str(folder), "--port", "0", "--page", str(environment)
    )
    try:
        best = max(float(json.loads(one["value"])) for one in port.json("/export-data"))
        browser.open(port.link)
        browser.waits_for(f"{best:.6f}", ".bestMetric", limit_s=60)
        over = sum(one["trialJobNumber"] for one in port.json("/job-statistics"))
        assert f"{over}/Infinity" in browser.text().replace("\n", "")
        browser.open(f"{port.link}experiment")
        browser.waits_for(folder.name)
        browser.picture("nni-experiments")
    finally:
        port.end()
