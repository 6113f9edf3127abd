"""Running, stopping and going on: what a user types, what it answers, how it exits."""

from __future__ import annotations

import os
import signal

from dispatcher.cli.exit_codes import ExitCode
from tests.integration.cli.conftest import PATIENCE_S, Place
from tests.support.processes import left_of


def _succeeded(place: Place) -> list[int]:
    return [one.id for one in place.trials() if one.outcome == "succeeded"]


def test_to_the_end(place: Place) -> None:
    place.go()
    answer = place("run", "experiment.yml")
    assert answer.startswith("chain completed")
    assert "6 trials: 6 succeeded" in answer
    assert answer.index("n=5") < answer.index("n=4")
    assert "\x1b" not in answer
    assert "chain  completed" in place("status")
    assert "bequeath resume" not in place("why")
    assert place.json("best")["trials"][0]["value"] == 5.0
    assert left_of(place.experiment) == []


def test_the_answer_as_json_and_changes_on_the_way(place: Place) -> None:
    place.go()
    document = place.json("run", "experiment.yml", "--set", "maxTrialNumber=3", "--name", "mine")
    assert document["experiment"]["status"] == "completed"
    assert document["experiment"]["name"] == "mine"
    assert [trial["value"] for trial in document["best"]] == [2.0, 1.0, 0.0]


def test_ctrl_c_once_drains_and_resume_goes_on(place: Place) -> None:
    head = place.start("run", "experiment.yml")
    place.wait_until_running()
    head.send_signal(signal.SIGINT)
    place.wait_until(lambda: place.json("top")["snapshot"]["phase"] == "draining", "draining")
    place.go()
    out, err = head.communicate(timeout=PATIENCE_S)
    assert head.returncode == ExitCode.INTERRUPTED, err
    assert "running trials may finish" in err
    assert f"bequeath resume {place.experiment.name}" in out
    assert _succeeded(place) == [0, 1]
    assert left_of(place.experiment) == []

    assert "6 trials: 6 succeeded" in place("resume")
    assert _succeeded(place) == [0, 1, 2, 3, 4, 5]


def test_ctrl_c_twice_stops_at_once_and_resume_goes_on(place: Place) -> None:
    head = place.start("run", "experiment.yml")
    place.wait_until_running()
    head.send_signal(signal.SIGINT)
    place.wait_until(lambda: place.json("top")["snapshot"]["phase"] == "draining", "draining")
    head.send_signal(signal.SIGINT)
    out, err = head.communicate(timeout=PATIENCE_S)
    assert head.returncode == ExitCode.INTERRUPTED, err
    assert out.startswith("chain stopped")
    assert _succeeded(place) == []
    assert left_of(place.experiment) == []

    place.go()
    place("resume")
    assert _succeeded(place) == [0, 1, 2, 3, 4, 5]


def test_a_terminal_that_closes_stops_at_once(place: Place) -> None:
    head = place.start("run", "experiment.yml")
    place.wait_until_running()
    head.send_signal(signal.SIGHUP)
    _, err = head.communicate(timeout=PATIENCE_S)
    assert head.returncode == ExitCode.INTERRUPTED, err
    assert left_of(place.experiment) == []


def test_stopped_from_elsewhere(place: Place) -> None:
    head = place.start("run", "experiment.yml")
    place.wait_until_running()
    assert "has stopped" in place("stop")
    head.communicate(timeout=PATIENCE_S)
    assert head.returncode == ExitCode.EXPERIMENT_STOPPED
    assert place.json("status")["experiment"]["status"] == "stopped"
    assert "bequeath resume" in place("why")


def test_in_the_background(place: Place) -> None:
    made = place.json("create", "experiment.yml")
    assert made["folder"] == str(place.experiment)
    place.wait_until_running()
    os.kill(made["pid"], 0)
    assert "slots 2/2 busy" in place("top", "--once")
    assert place("why") == "all 2 slots are busy\n"
    status = place.json("status")
    assert status["experiment"]["status"] == "running"
    assert status["head"]["counts"]["running"] == 2
    drain = place.start("stop", "--drain")
    place.wait_until(lambda: place.json("top")["snapshot"]["phase"] == "draining", "draining")
    place.go()
    out, err = drain.communicate(timeout=PATIENCE_S)
    assert "has stopped" in out, err
    assert _succeeded(place) == [0, 1]
    place("resume", "--background")
    place.wait_until(lambda: len(_succeeded(place)) == 6, "all trials are over")


def test_a_second_head_is_refused_in_words(place: Place) -> None:
    made = place.json("create", "experiment.yml")
    place.wait_until_running()
    error = place("resume", place.experiment.name, code=ExitCode.USER)
    assert f"a head already leads this experiment: process {made['pid']}" in error
    assert place.json("status")["experiment"]["pid"] == made["pid"]


def test_kill_leaves_nothing_and_resume_goes_on(place: Place) -> None:
    head = place.start("run", "experiment.yml")
    place.wait_until_running()
    place("kill", code=ExitCode.USAGE)  # nobody was asked
    assert head.poll() is None
    assert head.pid in place.json("kill", "--yes")["processes"]
    head.communicate(timeout=PATIENCE_S)
    assert left_of(place.experiment) == []
    assert "ended without winding up" in place("why")
    assert "lost its head" in place("doctor")
    place.go()
    place("resume")
    assert _succeeded(place) == [0, 1, 2, 3, 4, 5]


def test_a_tuner_that_raises_is_shown_and_exits_with_3(place: Place) -> None:
    (place.folder / "search.py").write_text(
        "from tuners import Tuner\n\n\nclass Chain(Tuner):\n"
        "    def generate_parameters(self, parameter_id, **kwargs):\n"
        "        raise ValueError('out of ideas')\n\n"
        "    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):\n"
        "        pass\n"
    )
    error = place("run", "experiment.yml", code=ExitCode.USER)
    assert "ValueError: out of ideas" in error
    assert "search.py" in error
    assert place.json("status")["experiment"]["status"] == "failed"


def test_an_experiment_file_with_faults_starts_nothing(place: Place) -> None:
    file = place.folder / "experiment.yml"
    file.write_text(file.read_text() + "maxTrialNumer: 3\n")
    error = place("run", "experiment.yml", code=ExitCode.USER)
    assert "experiment.yml:11:1: unknown key 'maxTrialNumer'" in error
    assert not place.kept.exists()
