"""Chaos for real: whatever is done to an experiment's processes, its trials are accounted for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from tests.faults.experiments import ROOT, Experiment
from tests.support.processes import left_of, wait_until

Make = Callable[..., Experiment]

TRIALS = 300
SEED = int(os.environ.get("CHAOS_SEED", "7"))

#: Chaos is no fault of a trial; without it none fails.
PATIENT = {"trialRetries": 1000, "lostRetries": 1000, "maxFailedTrialsInARow": 0}

#: A bound on a hang.
RUN_S = 400.0


def run(file: Path, *words: str) -> subprocess.Popen[bytes]:
    with (file.parent / "run.stderr").open("wb") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "dispatcher.cli", "run", str(file), *words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )


def written(experiment: Experiment, name: str) -> Path:
    """The experiment file; JSON is YAML."""
    file = experiment.base / f"{name}.yml"
    file.write_text(json.dumps(experiment.values()))
    return file


def led(experiment: Experiment, name: str, *words: str) -> subprocess.Popen[bytes]:
    """``bequeath run`` on it, once its folder is there."""
    process = run(written(experiment, name), *words)
    found: list[Path] = []
    wait_until(lambda: found.extend(experiment.base.glob("faults-*")) or found, "a folder")
    experiment.folder = found[0]
    return process


def acts(experiment: Experiment) -> list[dict[str, Any]]:
    text = (experiment.folder / "logs" / "chaos.log").read_text()
    return [json.loads(line) for line in text.splitlines()]


def outcome(experiment: Experiment) -> dict[int, tuple[str, object]]:
    """Of each trial: what was proposed (the last time), and the result that was told."""
    proposed = {x.trial: x.parameters for x in experiment.events if isinstance(x, e.Proposed)}
    told = {number: value for what, number, value in experiment.calls() if what == "result"}
    return {number: (proposed[number], told[number]) for number in proposed}


def test_300_trials_under_chaos_end_as_without(tmp_path: Path, make: Make) -> None:
    """The same trials with the same parameters and the same results, each told once."""
    calm = Experiment(tmp_path / "calm", trials=TRIALS, tuner="Remembering")
    calm.create()
    assert calm.lead_to_the_end() == 0
    calm.judge()

    wild = make(
        trials=TRIALS,
        tuner="Remembering",
        function="train_at_leisure",
        module="chaotic",
        **PATIENT,
    )
    process = led(wild, "wild", "--chaos", str(SEED), "--chaos-every", "0.4")
    assert process.wait(RUN_S) == 0, (tmp_path / "run.stderr").read_text()
    wild.judge(spoilt=TRIALS)
    assert outcome(wild) == outcome(calm)

    done = Counter((act["deed"], act.get("victim")) for act in acts(wild) if act.get("pid"))
    heads = done["start", "head"]
    assert heads == 1 + done["kill", "head"], "a head that was killed is resumed"
    struck = {victim for deed, victim in done if deed != "start"}
    assert struck == {"trial", "tuner host", "agent", "head"}, done
    assert {"kill", "delay"} <= {deed for deed, _ in done}


def test_an_interrupt_ends_the_chaos_and_what_was_stopped_goes_on(make: Make) -> None:
    experiment = make(trials=5000, function="train_at_leisure", module="chaotic", **PATIENT)
    process = led(experiment, "wild", "--chaos", "3", "--chaos-every", "0.1")
    log = experiment.folder / "logs" / "chaos.log"
    wait_until(lambda: log.exists() and log.read_text().count("\n") > 6, "some chaos")
    process.send_signal(signal.SIGTERM)
    assert process.wait(RUN_S) == 130
    assert acts(experiment)[-1]["deed"] == "end"
    assert left_of(experiment.folder) == []


@pytest.mark.parametrize("words", [["--chaos"], ["--chaos", "at-random"], ["--chaos-every", "0"]])
def test_without_a_seed_there_is_no_chaos(words: list[str], make: Make) -> None:
    experiment = make(trials=1)
    assert run(written(experiment, "wild"), *words).wait(RUN_S) == 2
    assert list(experiment.base.glob("faults-*")) == []
