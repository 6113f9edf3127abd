"""Looking at trials and changing them while they run."""

from __future__ import annotations

import signal

from dispatcher.cli.exit_codes import ExitCode
from tests.integration.cli.conftest import PATIENCE_S, Place


def test_submit_and_kill(place: Place) -> None:
    place("create", "experiment.yml")
    place.wait_until_running()
    number = int(place("trial", "submit", '{"n": 77}'))
    submitted = place.json("trial", "show", str(number))["trial"]
    assert submitted["by_hand"]
    assert submitted["parameters"] == {"n": 77}
    assert "running" in place("trial", "ls")

    place("trial", "kill", "1")
    place.wait_until(lambda: place.trials()[1].outcome == "killed", "trial 1 is killed")
    error = place("trial", "kill", "999", code=ExitCode.USER)
    assert "there is no trial 999" in error
    out, err = place.both("trial", "kill", "1", "999", code=ExitCode.USER)
    assert out == "trial 1: was over already: killed\n"
    assert "there is no trial 999" in err

    place.go()
    place.wait_until(
        lambda: place.json("experiment", "list")["experiments"][0]["status"] == "completed",
        "all is over",
    )
    values = {one.id: one.value for one in place.trials()}
    assert values[number] == 77.0
    assert values[1] is None


def test_an_output_is_followed_to_its_end(place: Place) -> None:
    place("create", "experiment.yml")
    place.wait_until_running()
    # What it prints goes another way than what it reports, and may come later.
    place.wait_until(lambda: place("trial", "log", "0") == "␛[2Jtrial 0\n", "it has printed")
    following = place.start("trial", "log", "0", "--follow")
    assert following.stdout is not None
    assert following.stdout.readline() == "␛[2Jtrial 0\n"
    place.go()
    following.communicate(timeout=PATIENCE_S)
    assert following.returncode == 0


def test_limits_change_while_it_runs(place: Place) -> None:
    place("create", "experiment.yml")
    place.wait_until_running()
    place("experiment", "update", "trialConcurrency", "3")
    assert place.json("top")["snapshot"]["slots"] == 3
    place("experiment", "update", "maxTrialNumber", "8")
    error = place("experiment", "update", "trialCommand", "false", code=ExitCode.USER)
    assert "is fixed" in error
    place.go()
    place.wait_until(
        lambda: place.json("status")["experiment"]["status"] == "completed", "it is completed"
    )
    assert sum(one.outcome == "succeeded" for one in place.trials()) == 8


def test_ctrl_c_in_top_ends_the_view_only(place: Place) -> None:
    place("create", "experiment.yml")
    place.wait_until_running()
    following = place.start("trial", "log", "0", "--follow")
    assert following.stdout is not None
    following.stdout.readline()
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=PATIENCE_S)
    assert following.returncode == ExitCode.INTERRUPTED
    assert place.json("status")["experiment"]["status"] == "running"
    place("stop")
