"""Programs of Optuna's, Ray Tune's and NNI's documentations, written for bequeath: they run.

Those in their words run as well where the package is there; NNI's and Katib's run here.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pages import Reader
from tests.support.processes import end_processes_of

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "coming_from"

#: Processes that load torch: what they do differently from the others is theirs, not ours.
LONG = (pytest.mark.torch, pytest.mark.extended)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader with a copy of the examples."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    one = Reader(tmp_path)
    yield one
    if one.home.is_dir():
        for folder in one.home.iterdir():
            end_processes_of(folder)


def _best(printed: str) -> float:
    """The first number of the last line."""
    return float(printed.splitlines()[-1].replace(":", " ").split(" {")[0].split()[-1])


@pytest.mark.parametrize(
    "program, least",
    [
        ("optuna_sklearn.py", 0.9),
        ("optuna_pruning.py", 0.8),
        ("ray_pbt.py", 5),
        pytest.param("optuna_pytorch.py", 0.7, marks=pytest.mark.torch),
        pytest.param("ray_asha.py", 0.7, marks=LONG),
        pytest.param("nni_quickstart.py", 0.5, marks=LONG),
        pytest.param("nni_oneshot.py", 0.7, marks=LONG),
    ],
)
def test_a_program_finds_something_good(reader: Reader, program: str, least: float) -> None:
    assert _best(reader.type(f"python {program}")) >= least


def test_more_trials_of_a_study_are_more_trials(reader: Reader) -> None:
    printed = reader.type("python optuna_quadratic.py")
    assert [line.split()[0] for line in printed.splitlines()][:2] == ["10", "30"]
    assert _best(printed) <= 50


def test_trials_of_the_program_with_an_assessor_end_early(reader: Reader) -> None:
    """Mutation: an assessor that nobody asks."""
    assert _best(reader.type("python ray_search.py")) <= 0
    assert "stopped" in reader.type("bequeath trial ls")


@pytest.mark.torch
@pytest.mark.extended
def test_a_file_and_a_program_in_place_of_nnis(reader: Reader) -> None:
    reader.type("bequeath run nni_mnist/experiment.yml")
    assert "succeeded" in reader.type("bequeath trial ls mnist")
    printed = reader.type("python nni_mnist/trial.py")
    assert "final result" in printed


def test_katibs_file_and_ours_run_the_same_program(reader: Reader) -> None:
    theirs = reader.type("bequeath run katib/katib.yaml --json")
    ours = reader.type("bequeath run katib/experiment.yml --json")
    for printed in (theirs, ours):
        assert '"completed"' in printed
        assert '"alpha"' in printed
        assert '"loss"' in printed


@pytest.mark.skipif(importlib.util.find_spec("optuna") is None, reason="needs optuna")
def test_optunas_program_runs_as_well(reader: Reader) -> None:
    assert _best(reader.type("python theirs/optuna_pruning.py")) > 0.8


@pytest.mark.torch
@pytest.mark.extended
def test_nnis_program_runs_as_it_is(reader: Reader) -> None:
    """Two trials in place of ten: each is a process that loads torch."""
    program = reader.folder / "theirs" / "nni" / "main.py"
    text = program.read_text()
    assert "max_trial_number = 10" in text
    program.write_text(text.replace("max_trial_number = 10", "max_trial_number = 2"))
    printed = reader.type("cd theirs/nni && bequeath run main.py")
    assert "features" in printed


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray[tune]")
def test_ray_tunes_program_runs_as_well(reader: Reader) -> None:
    assert _best(reader.type("python theirs/ray_search.py")) < 0


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("syne_tune") is None, reason="needs syne-tune")
def test_syne_tunes_program_runs_as_well(reader: Reader) -> None:
    assert "lr" in reader.type("cd theirs/syne_tune && python launch.py")
