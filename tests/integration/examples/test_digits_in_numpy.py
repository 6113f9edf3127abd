"""The examples in numpy, cut short, with real processes: what is inherited, and their pictures."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from dispatcher.core.model import Phase
from dispatcher.experiment import load_experiment
from dispatcher.experiments.creating import create
from dispatcher.head.head import Head
from dispatcher.queries import ExperimentReader, export_rows, metrics
from tests.support.checker import check_store
from tests.support.processes import end_processes_of

EXAMPLES = Path(__file__).parents[3] / "examples"

Rows = list[dict[str, Any]]


class Example:
    """A copy of an example's folder: run with a changed file, and its modules."""

    def __init__(self, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.code = Path(shutil.copytree(EXAMPLES / name, folder / name))
        self.folder = folder
        self.ran: list[Path] = []
        monkeypatch.syspath_prepend(str(self.code))

    def module(self, name: str) -> ModuleType:
        return importlib.import_module(name)

    def run(self, change: Callable[[dict[str, Any]], None], file: str = "experiment.yml") -> Rows:
        """All trials as rows, once it has completed without a fault in the journal."""
        keys = yaml.safe_load((self.code / file).read_text())
        change(keys)
        keys["experimentWorkingDirectory"] = str(self.folder / "kept")
        (self.code / file).write_text(json.dumps(keys))
        place = create(load_experiment(self.code / file))
        self.ran.append(place)
        assert Head(place).run() is Phase.COMPLETED
        assert check_store(place / "journal.sqlite") == []
        with ExperimentReader.open(place) as reader:
            return export_rows(reader)

    def births(self, trials: int) -> dict[int, float]:
        """The first intermediate result of each trial."""
        with ExperimentReader.open(self.ran[-1]) as reader:
            return {n: metrics(reader, n)[0].number or 0.0 for n in range(trials)}


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Example]]:
    made: list[Example] = []

    def make(name: str) -> Example:
        made.append(Example(name, tmp_path, monkeypatch))
        return made[-1]

    before = set(sys.modules)
    yield make
    for one in made:
        for place in one.ran:
            end_processes_of(place)
    for name in set(sys.modules) - before:
        if str(tmp_path) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def drawn(one: Example, rows: Rows, name: str) -> None:
    pytest.importorskip("matplotlib")
    one.module("picture").draw(rows, one.folder / name)
    assert (one.folder / name).stat().st_size > 5000


def test_spos_trains_once_and_evaluates_paths_within_the_bound(example: Any) -> None:
    spos = example("spos_digits")

    def shorter(keys: dict[str, Any]) -> None:
        keys["maxTrialNumber"] = 9
        keys["tuner"]["classArgs"] |= {"population_size": 4, "top": 2}
        keys["tuner"]["classArgs"]["supernet"]["steps"] = 600

    rows = spos.run(shorter)
    assert [row["outcome"] for row in rows] == ["succeeded"] * 9
    assert [row["restore_path"] for row in rows] == [None] + ["trials/0"] * 8
    assert [row["save_path"] for row in rows] == ["trials/0"] + [None] * 8
    costs = spos.module("picture").COSTS
    for row in rows[1:]:
        path = [row[f"parameters.block{n}"] for n in range(1, 7)]
        assert sum(costs[option] for option in path) <= 1500
        assert row["value"] > 0.3  # a tenth would be guessing
    drawn(spos, rows, "paths.png")


def test_pbt_goes_on_with_optimiser_and_schedule_and_its_schedule_runs_again(example: Any) -> None:
    pbt = example("pbt_digits")

    def shorter(keys: dict[str, Any]) -> None:
        keys["maxTrialNumber"] = 16

    rows = pbt.run(shorter)
    assert [row["restore_path"] is None for row in rows] == [True] * 8 + [False] * 8
    drawn(pbt, rows, "population.png")
    replay = pbt.module("replay")
    keys = replay.replay(rows)
    whole = yaml.safe_load((EXAMPLES / "pbt_digits" / "experiment.yml").read_text())
    assert keys["trainingService"] == whole["trainingService"]  # steps start as quickly
    (pbt.code / "replay.yml").write_text(json.dumps(keys))
    again = pbt.run(lambda keys: keys.update(trialCodeDirectory=str(pbt.code)), "replay.yml")
    for row, step in zip(again, keys["tuner"]["classArgs"]["schedule"], strict=True):
        assert {name: row[f"parameters.{name}"] for name in step} == step
    assert again[-1]["restore_path"] == (f"trials/{len(again) - 2}" if len(again) > 1 else None)


def test_networks_are_born_as_good_as_their_parents(example: Any) -> None:
    morphism = example("morphism_digits")

    def shorter(keys: dict[str, Any]) -> None:
        keys |= {"maxTrialNumber": 16, "seed": 1}
        few = {"population_size": 5, "sample_size": 2, "asynchronous": False}
        keys["tuner"]["classArgs"] |= few

    rows = morphism.run(shorter)
    births, by_path = morphism.births(16), {row["save_path"]: row for row in rows}
    children = [row for row in rows if row["restore_path"]]
    assert len(children) == 11
    for row in children:
        parent = by_path[row["restore_path"]]
        assert births[row["trial"]] == pytest.approx(parent["value"], abs=0.1)
    drawn(morphism, rows, "pareto.png")
