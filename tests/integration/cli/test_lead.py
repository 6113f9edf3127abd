"""What a job or a pod runs: it begins, goes on, and waits where there is nothing to lead."""

from __future__ import annotations

import os
import signal

from dispatcher.cli.exit_codes import ExitCode
from dispatcher.folders.status import leader_of
from tests.integration.cli.conftest import PATIENCE_S, Place

POD = ("lead", "--stay", "experiment.yml")


def status(place: Place) -> str:
    return str(place.json("status")["experiment"]["status"])


def test_a_pod_that_ends_leaves_the_trials_to_the_next_one(place: Place) -> None:
    """And where it is completed the next one waits. Mutation: SIGTERM stops, as in a terminal."""
    file = place.folder / "experiment.yml"
    file.write_text(file.read_text().replace("headGrace: 5s", "headGrace: 100s"))
    first = place.start(*POD)
    place.wait_until_running()
    attempts = {one.id: one.attempt for one in place.trials()}
    place.end(first, ExitCode.INTERRUPTED)
    assert status(place) == "interrupted"

    second = place.start(*POD)
    place.wait_until(lambda: status(place) == "running", "the next one leads")
    place.go()
    place.wait_until(lambda: status(place) == "completed", "it is completed")
    assert {one.id: one.attempt for one in place.trials() if one.id in attempts} == attempts
    place.end(second, ExitCode.OK)

    third = place.start(*POD)
    assert third.stderr is not None
    assert "is completed: it is kept as it is" in third.stderr.readline()
    assert third.poll() is None, "the pod stays, so that one can look"
    place("lead", "experiment.yml")
    file.write_text(file.read_text().replace("chain", "another"))
    assert "another completed" in place("lead", "experiment.yml"), "the name tells which is meant"


def test_what_was_taken_up_again_and_lost_its_head_is_led(place: Place) -> None:
    """One that was stopped is not taken up by itself. Somebody takes it up in the background, whose
    head dies: the pod's process ends, so that its kubelet starts it anew."""
    waiting = place.start(*POD)
    place.wait_until_running()
    assert "has stopped" in place("stop")
    place.wait_until(lambda: status(place) == "stopped", "it is stopped")
    assert waiting.poll() is None
    place("resume", "--background")
    os.kill(int(leader_of(place.experiment)["pid"]), signal.SIGKILL)
    out, err = waiting.communicate(timeout=PATIENCE_S)
    assert waiting.returncode == ExitCode.ENVIRONMENT, out + err
    assert "has lost its head" in err
