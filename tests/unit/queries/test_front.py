"""Several objectives: the front, and all metrics in rows."""

from __future__ import annotations

import csv
import io
import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.queries import ExperimentReader, best, export_csv, export_rows, front, objectives
from dispatcher.queries.fronts import front_numbers, unbeaten
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


# -- of the file, with bounds ----------------------------------------------------------------

BOUNDED = {"default": "maximize", "size": "minimize <= 12", "mem": ">= 3"}
RESULTS: list[object] = [
    {"default": 5, "size": 13, "mem": 9},  # the best, and too large
    {"default": 4, "size": 12, "mem": 3},
    {"default": 3, "size": 2, "mem": 2.5},  # too little
    {"default": 1, "size": 2, "mem": 4},
    {"default": 1, "size": 5, "mem": 4},  # beaten by the one before
    {"default": 9, "size": 1},  # who knows
]


def _with_objectives(base: Path, results: list[object], objectives: dict[str, str]) -> Path:
    folder = _filled(base, results)
    config = json.loads((folder / "experiment.json").read_text())
    config["experiment"]["objectives"] = objectives
    (folder / "experiment.json").write_text(json.dumps(config))
    return folder


def test_a_trial_that_breaks_a_bound_is_never_on_the_front(tmp_path: Path) -> None:
    """Mutation: a bound of a number that is no objective is not looked at."""
    folder = _with_objectives(tmp_path, RESULTS, BOUNDED)
    with ExperimentReader.open(folder) as reader:
        assert list(objectives(reader)) == ["default", "size"]
        assert [one.id for one in front(reader)] == [1, 3]
        assert [one.id for one in front(reader, "trial>2")] == [3]
        assert front_numbers(reader) == [1, 3]
        assert [one.id for one in best(reader, 9)] == [1, 3, 4]


def test_best_is_within_the_bounds_with_one_objective_too(tmp_path: Path) -> None:
    folder = _with_objectives(tmp_path, RESULTS, {"default": "maximize >= 2", "mem": "<= 9"})
    with ExperimentReader.open(folder) as reader:
        assert objectives(reader) == {}
        assert front_numbers(reader) is None
        assert [one.id for one in best(reader, 9)] == [0, 1, 2]


@given(
    st.lists(st.tuples(*[st.integers(0, 5)] * 3), max_size=12),
    st.integers(0, 5),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_front_within_a_bound_is_that_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]], bound: int
) -> None:
    base = tmp_path_factory.mktemp("front")
    results: list[object] = [{"default": a, "size": b, "mem": c} for a, b, c in rows]
    folder = _with_objectives(
        base, results, {"default": "maximize", "size": "minimize", "mem": f"<= {bound}"}
    )
    kept = [n for n, row in enumerate(rows) if row[2] <= bound]

    def beaten(n: int) -> bool:
        a, b, _ = rows[n]
        return any(
            rows[m][0] >= a and rows[m][1] <= b and (rows[m][:2] != (a, b) or m < n)
            for m in kept
            if m != n
        )

    with ExperimentReader.open(folder) as reader:
        assert set(front_numbers(reader) or []) == {n for n in kept if not beaten(n)}


def test_rows_say_who_is_on_the_front(tmp_path: Path) -> None:
    """Mutation: a front of all trials where there is one objective."""
    folder = _with_objectives(tmp_path / "two", RESULTS, BOUNDED)
    with ExperimentReader.open(folder) as reader:
        rows = [row["on_front"] for row in export_rows(reader)][: len(RESULTS)]
        lines = [row["on_front"] for row in csv.DictReader(io.StringIO(export_csv(reader)))]
    assert rows == [False, True, False, True, False, False]
    assert lines[: len(RESULTS)] == ["false", "true", "false", "true", "false", "false"]
    with ExperimentReader.open(_filled(tmp_path / "one", RESULTS)) as reader:
        assert {row["on_front"] for row in export_rows(reader)} == {None}


@pytest.mark.parametrize("names", [["default", "size"], ["default", "size", "mem"]])
def test_a_front_of_ten_thousand(names: list[str]) -> None:
    """Mutation: each is compared with all on the front by a loop of Python, for half a minute."""
    draw = random.Random(1)
    angles = [draw.random() for _ in range(10_000)]
    points = sorted({(a, 1 - a, *(draw.random() for _ in names[2:])) for a in angles}, reverse=True)
    began = time.process_time()
    assert unbeaten(points) == list(range(len(points)))
    assert time.process_time() - began < 10
    assert unbeaten([(2.0, 1.0), (2.0, 1.0), (1.0, 1.0), (0.0, 3.0)]) == [0, 3]
    assert unbeaten([]) == []
