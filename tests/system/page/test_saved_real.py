"""A real run, saved while it runs and when it is over: what the command line and the file say."""

from __future__ import annotations

import re

import pytest

from tests.integration.cli.conftest import Place, place
from tests.support.browser import Browser

__all__ = ["place"]

pytestmark = pytest.mark.needs("chromium")

TUNER = """\
from tuners import Tuner


class Line(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        parameters = {"n": parameter_id, "save_path": f"t/{parameter_id}"}
        if parameter_id:
            self.wait_for(parameter_id - 1)
            parameters["restore_path"] = f"t/{parameter_id - 1}"
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""

TRIAL = """\
import numpy as np
import trial_runtime
from tests.support import hold


def main(parameters):
    n = parameters["n"]
    print("</script><b>trial", n, flush=True)
    for step in range(5):
        trial_runtime.report_intermediate(n + step / 10)
    if n:
        hold.until("go")
    state = {"stem.w": np.arange(64.0), "head.w": np.full(8 + n, float(n))}
    trial_runtime.save_weights(state)
    return float(n)
"""


@pytest.fixture
def line(place: Place) -> Place:
    """Four trials in a line of descent; the second waits for a file."""
    (place.folder / "search.py").write_text(TUNER)
    (place.folder / "train.py").write_text(TRIAL)
    text = (place.folder / "experiment.yml").read_text()
    text = text.replace("search:Chain", "search:Line").replace("Number: 6", "Number: 4")
    (place.folder / "experiment.yml").write_text(text)
    place("create", "experiment.yml")
    return place


def test_a_real_run_is_handed_on(browser: Browser, line: Place) -> None:
    line.wait_until(
        lambda: any(one.id == 1 and one.state == "running" for one in line.trials()), "trial 1 runs"
    )
    name = line.experiment.name
    while_it_runs = line.folder / "running.html"
    line("web", "--export", name, "-o", str(while_it_runs))
    browser.open(while_it_runs.as_uri())
    browser.waits_for("1 running")
    browser.waits_for("1 of 4 over")
    assert browser.faults() == []

    line.go()
    line.wait_until(lambda: sum(one.state == "ended" for one in line.trials()) == 4, "all are over")
    over = line.folder / "over.html"
    told = line.json("web", "--export", name, "-o", str(over), "--with-logs")
    assert (told["trials"], told["detailed"]) == (4, 4)
    url = over.as_uri()
    browser.open(f"{url}#/e/{name}/t/3")
    browser.waits_for("</script><b>trial 3", ".log pre")
    tensors = "section[aria-label^='tensors']"
    browser.waits_for("3 generations ago", tensors)
    assert re.search(r"stem\s.*1 unchanged\s.*0", browser.text(tensors))
    assert re.search(r"head\s.*1 resized\s.*itself", browser.text(tensors))
    assert browser.all("[aria-label='curve of trial 3, 5 reports']")
    browser.picture("saved-real-trial")

    # The moment in which trial 1 had just begun: the same by the command and by the file.
    (began,) = (one.started_at for one in line.trials() if one.id == 1)
    assert began is not None
    moment = f"{began + 0.001:.3f}"
    then = line.json("experiment", "at", moment, "-e", name)
    assert then["states"]["running"] == 1
    assert then["states"]["ended"] == 1
    assert then["best"] == 0
    browser.run("location.hash = arguments[0]", f"#/e/{name}?at={moment}")
    browser.waits_for("1 run · 1 over", "[data-lapse]")
    assert browser.faults() == []

    found = line.json("trial", "tensors", "3", "-e", name)
    assert [(one["trial"], one["generations"]) for one in found["ancestors"]] == [(3, 0), (0, 3)]
    assert "stem" in line("trial", "tensors", "3", "-e", name)
