"""Programs of Optuna's, Ray Tune's and NNI's documentations, written for bequeath: they run.

Those in their words run as well: NNI's and Katib's by ours, Optuna's, Ray Tune's and Syne Tune's
where the package is there.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import ray_cluster
from tests.support.pages import Reader
from tests.support.processes import end_processes_of
from tests.support.trackers import python_of

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "coming_from"

#: Processes that load torch: what they do differently from the others is theirs, not ours.
LONG = (pytest.mark.torch, pytest.mark.extended)


#: The folders of a member's checkpoints, by what they are for.
WAYS = ("load", "save")

#: No report of its use to its makers, and plain lines.
RAY = "RAY_USAGE_STATS_ENABLED=0 RAY_AIR_NEW_OUTPUT=0"


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


def fewer(reader: Reader, file: str, all_of_them: str, some: str) -> None:
    """Let a program ask for fewer trials, where each is a process that loads much."""
    path = reader.folder / file
    text = path.read_text()
    assert text.count(all_of_them) == 1
    path.write_text(text.replace(all_of_them, some))


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
        pytest.param("nni_pbt.py", 0.7, marks=LONG),
        pytest.param("nni_weights.py", 0.5, marks=LONG),
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
    limit = "max_trial_number = "
    fewer(reader, "theirs/nni/main.py", f"{limit}10", f"{limit}2")
    printed = reader.type("cd theirs/nni && bequeath run main.py")
    assert "features" in printed


def trials(reader: Reader, name: str) -> list[dict[str, Any]]:
    """The trials of an experiment; all have succeeded."""
    rows = json.loads(reader.type(f"bequeath trial ls {name} --json"))["trials"]
    assert {row["outcome"] for row in rows} == {"succeeded"}
    return list(rows)


@pytest.mark.torch
@pytest.mark.extended
def test_nnis_file_and_program_run_as_they_are(reader: Reader) -> None:
    """By the file, and by hand without an NNI, as in its standalone mode."""
    fewer(reader, "theirs/nni_mnist/config.yml", "maxTrialNumber: 6", "maxTrialNumber: 2")
    reader.type("bequeath run theirs/nni_mnist/config.yml")
    for row in trials(reader, "mnist"):
        assert 0 < row["result"] <= 1
        assert set(row["parameters"]) == {"batch_size", "hidden_size", "lr", "momentum"}
    shim = "PYTHONPATH=$(python -m trial_runtime.nni_shim)"
    printed = reader.type(f"{shim} python theirs/nni_mnist/mnist.py --epochs 1")
    assert "result" in printed


@pytest.mark.torch
@pytest.mark.extended
def test_members_of_nnis_population_go_on_from_weights_saved_after_the_result(
    reader: Reader,
) -> None:
    """Mutation: a child starts at its parent's result, when nothing is saved yet."""
    fewer(reader, "theirs/nni_pbt/config.yml", "maxTrialNum: 20", "maxTrialNum: 4")
    fewer(reader, "theirs/nni_pbt/config.yml", "population_size: 4", "population_size: 2")
    reader.type("bequeath run theirs/nni_pbt/config.yml")
    saved = []
    for row in sorted(trials(reader, "pbt"), key=lambda row: row["id"]):
        load, save = (Path(row["parameters"][f"{word}_checkpoint_dir"]) for word in WAYS)
        assert load in saved if row["id"] >= 2 else load == save
        assert (save / "model.pth").is_file()
        saved.append(save)


@pytest.mark.torch
@pytest.mark.extended
def test_children_of_nnis_tuner_wait_for_their_parents_in_threads(reader: Reader) -> None:
    """Mutation: ``multiThread: true`` answers one request after the other."""
    fewer(reader, "theirs/nni_weights/config.yml", "maxTrialNum: 10", "maxTrialNum: 5")
    fewer(reader, "theirs/nni_weights/config.yml", "population: 4", "population: 2")
    reader.type("bequeath run theirs/nni_weights/config.yml")
    for row in trials(reader, "weights"):
        number, before = row["id"], row["parameters"]["restore_path"]
        older = [f"weights-{one}.pth" for one in (number - 2, number - 1) if one >= 0]
        assert before in older or (before is None and not older)
        assert (reader.folder / "theirs" / "nni_weights" / f"weights-{number}.pth").is_file()


@pytest.mark.extended
def test_ray_tunes_program_runs_as_well(reader: Reader) -> None:
    """Eight trials in place of forty, each a process; in a network of its own, since Ray listens at
    all addresses and finds clusters by them."""
    python = python_of("raytune")
    if why := ray_cluster.no_network():
        pytest.skip(why)
    fewer(reader, "theirs/ray_search.py", "num_samples=40", "num_samples=8")
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as short:  # it holds sockets
        settings = f"HOME={reader.folder} RAY_TMPDIR={short} {RAY}"
        command = ray_cluster.alone([str(python), "theirs/ray_search.py"])
        try:
            printed = reader.type(f"{settings} {shlex.join(command)}", timeout_s=500)
        finally:
            end_processes_of(Path(short))
    assert _best(printed) <= 10


@pytest.mark.extended
def test_syne_tunes_program_runs_as_well(reader: Reader) -> None:
    """Four trials in place of twenty: each is a process that loads torch."""
    python = python_of("synetune")
    limit = "max_num_trials_finished="
    fewer(reader, "theirs/syne_tune/launch.py", f"{limit}20", f"{limit}4")
    home = f"HOME={reader.folder} SYNETUNE_FOLDER={reader.folder / 'syne-tune'}"
    printed = reader.type(f"cd theirs/syne_tune && {home} {python} launch.py")
    assert "'config_lr'" in printed or "'lr'" in printed
