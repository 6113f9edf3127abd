"""The example's three experiments of the old kinds, unmodified, with real processes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.experiment import load_experiment
from dispatcher.experiment.updates import apply_update
from dispatcher.experiments.creating import create
from dispatcher.head.head import Head
from dispatcher.store.journal import SqliteJournal
from tests.support.checker import check_store
from tests.support.processes import end_processes_of

EXAMPLE = Path(__file__).parents[3] / "examples" / "nni_classic"

Run = Callable[[Path, int], tuple[Path, list[Any]]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run an experiment file to its end: its folder, and the events of its journal."""
    folders: list[Path] = []

    def to_the_end(file: Path, trials: int) -> tuple[Path, list[Any]]:
        config = load_experiment(file)
        config = config.model_copy(update={"experiment_working_directory": tmp_path / "kept"})
        folder = create(apply_update(config, "maxTrialNumber", str(trials)))
        folders.append(folder)
        assert Head(folder).run() is Phase.COMPLETED
        journal = SqliteJournal.open(folder / "journal.sqlite")
        try:
            return folder, [row.event for row in journal.rows()]
        finally:
            journal.close()

    yield to_the_end
    for folder in folders:
        end_processes_of(folder)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("weights", "__pycache__")
    return Path(shutil.copytree(EXAMPLE, tmp_path / "example", ignore=ignored))


def finals(events: list[Any]) -> dict[int, Any]:
    return {ev.trial: json.loads(ev.value) for ev in events if isinstance(ev, e.FinalReported)}


def test_a_v1_file_with_a_built_in_tuner(run: Run, example: Path) -> None:
    folder, events = run(example / "config_v1.yml", 4)
    assert check_store(folder / "journal.sqlite") == []
    results = finals(events)
    assert len(results) == 4
    assert all(set(value) == {"default", "end"} for value in results.values())
    laid = json.loads((folder / "trials" / "0" / "1" / "parameter.cfg").read_text())
    assert laid["parameter_id"] == 0
    assert set(laid["parameters"]) == {"rate", "steps", "rule"}


def test_a_v2_file_whose_tuner_answers_later(run: Run, example: Path) -> None:
    # The last of the first wave ends when somebody has asked meanwhile, however quick all are.
    asked = example / "asked"
    waves, trial = example / "waves.py", example / "trial.py"
    raises = "            raise nni.NoMoreTrialError("
    assert raises in waves.read_text()
    waves.write_text(
        waves.read_text().replace(
            raises, f'            open({str(asked)!r}, "w").close()\n{raises}'
        )
    )
    trial.write_text(
        "import os, time\n"
        f"while os.environ['NNI_TRIAL_SEQ_ID'] == '3' and not os.path.exists({str(asked)!r}):\n"
        f"    time.sleep(0.02)\n{trial.read_text()}"
    )
    _, events = run(example / "config_v2.yml", 8)
    proposed = [ev.trial for ev in events if isinstance(ev, e.Proposed)]
    put_off = {ev.trial for ev in events if isinstance(ev, e.ForeignWaitSeen)}
    refused = {ev.trial for ev in events if isinstance(ev, e.RequestFailed)}
    assert len(proposed) == len(set(proposed)) == 8
    # Two waves of four: somebody asked between them, was not asked again, and was answered.
    assert put_off & set(proposed)
    assert not refused & set(proposed)


def test_children_wait_for_their_parents_in_threads(run: Run, example: Path) -> None:
    _, events = run(example / "config_weights.yml", 7)
    results = finals(events)
    # Three founders; each child starts from what its parent left, so generations count up.
    assert [results[trial] for trial in range(7)] == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0]
    order = [(type(ev), ev.trial) for ev in events if isinstance(ev, e.Proposed | e.EndDelivered)]
    for child in range(3, 7):
        ended = order.index((e.EndDelivered, child - 3))
        told = [ev.trial for ev in events if isinstance(ev, e.FinalReported)]
        assert told.index(child - 3) < told.index(child)
        assert ended < order.index((e.EndDelivered, child))


def test_phases_are_trials_of_their_own(run: Run, example: Path) -> None:
    """What the docs say about 'multiPhase'; each chain adds 1, then half of what it has."""
    _, events = run(example / "config_phases.yml", 6)
    told = [json.loads(ev.parameters) for ev in events if isinstance(ev, e.Proposed)]
    chains = [f"chains/{chain}" for chain in (0, 1)]
    for chain in chains:
        assert [one["phase"] for one in told if one["folder"] == chain] == [0, 1, 2]
    assert sorted(finals(events).values()) == [1.0, 1.0, 1.5, 1.5, 2.25, 2.25]


def test_by_hand_it_is_nnis_standalone_mode(example: Path) -> None:
    import subprocess
    import sys

    from trial_runtime import nni_shim

    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "trial.py"],
        cwd=example,
        env={"PYTHONPATH": f"{root}:{nni_shim.folder()}", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert '[nni] final result: {"default": ' in done.stdout


REAL = """
import json, os
folder = os.environ["NNI_SYS_DIR"]
assert os.environ["NNI_PLATFORM"] == "local" and os.environ["NNI_TRIAL_JOB_ID"]

def get_next_parameter():
    with open(os.path.join(folder, "parameter.cfg")) as file:
        return json.load(file)["parameters"]

def _send(kind, value):
    told = {"parameter_id": 0, "trial_job_id": "x", "type": kind, "sequence": 0}
    body = json.dumps({**told, "value": json.dumps(value)}) + chr(10)
    with open(os.path.join(folder, ".nni", "metrics"), "ab") as file:
        file.write(b"ME%06d" % len(body) + body.encode())

def report_intermediate_result(value):
    _send("PERIODICAL", value)

def report_final_result(value):
    _send("FINAL", value)
"""


def test_a_real_nni_in_the_trials_environment_is_used_and_heard(run: Run, example: Path) -> None:
    real = example / "installed" / "nni"
    real.mkdir(parents=True)
    (real / "__init__.py").write_text(REAL)
    file = example / "config_v1.yml"
    file.write_text(f"{file.read_text()}trialEnvironment: {{PYTHONPATH: {real.parent}}}\n")
    folder, events = run(file, 2)
    results = finals(events)
    assert len(results) == 2
    assert all(set(value) == {"default", "end"} for value in results.values())
    assert (folder / "trials" / "0" / "1" / ".nni" / "metrics").stat().st_size > 0
