"""Several objectives: the front, and all metrics in rows."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.queries import ExperimentReader, export_csv, export_rows, front, objectives
from dispatcher.store import SqliteJournal
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life
from tuners.pareto import Objectives, fronts

MODES = {"default": "maximize", "size": "minimize"}


def _filled(base: Path, results: list[object], **tuner: object) -> Path:
    folder = make_folder(base, tuner={"name": "NSGA2", **tuner})
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal)
    life.begin()
    for number, result in enumerate(results):
        life.whole(number, value=json.dumps(result))
    journal.close()
    return folder


def test_the_front_is_what_nobody_beats(tmp_path: Path) -> None:
    """Against the sorting that the tuners use."""
    draw = random.Random(1)
    results = [{"default": draw.randrange(20), "size": draw.randrange(20)} for _ in range(80)]
    folder = _filled(tmp_path, [*results, {"default": 99}, 99], classArgs={"objectives": MODES})
    points = [Objectives.of(MODES).point(each) for each in results]
    first = fronts([point for point in points if point is not None])[0]
    with ExperimentReader.open(folder) as reader:
        assert list(objectives(reader)) == ["default", "size"]
        found = front(reader)
    assert {(one.result["default"], one.result["size"]) for one in found} == {
        (results[at]["default"], results[at]["size"]) for at in first
    }
    values = [one.value for one in found]
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]
    assert len(values) == len(set(values)), "of equal results the first trial"


def test_one_objective_has_no_front(tmp_path: Path) -> None:
    folder = _filled(tmp_path, [1.0], classArgs={"objectives": {"default": "maximize"}})
    with ExperimentReader.open(folder) as reader:
        assert objectives(reader) == {}
        assert front(reader) == []


def test_the_argument_is_found_in_what_is_recorded(tmp_path: Path) -> None:
    values = {
        "tuner": {"name": "NSGAII", "classArgs": {"objectives": MODES}},
        "trialCommand": "true",
        "trialConcurrency": 2,
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
    }
    folder = _filled(tmp_path, [{"default": 1, "size": 2}])
    (folder / "experiment.json").write_text(to_json(build_experiment(values)))
    with ExperimentReader.open(folder) as reader:
        assert list(objectives(reader)) == ["default", "size"]


def test_rows_have_all_metrics(tmp_path: Path) -> None:
    result = {"default": 0.5, "size": 12, "per_class": {"cat": 0.25}, "curve": [1, 2]}
    folder = _filled(tmp_path, [result, 0.75])
    with ExperimentReader.open(folder) as reader:
        first, second, *_ = export_rows(reader)  # and requests without an answer
        lines = list(csv.DictReader(io.StringIO(export_csv(reader))))
    assert first["value"] == 0.5
    assert first["metrics.size"] == 12
    assert first["metrics.per_class.cat"] == 0.25
    assert "metrics.default" not in first
    assert not [key for key in second if key.startswith("metrics.")]
    assert (lines[0]["metrics.size"], lines[0]["metrics.curve"]) == ("12", "[1, 2]")
    assert lines[1]["metrics.size"] == ""
