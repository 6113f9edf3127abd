"""Several objectives with real processes: bred over a front, within bounds, all numbers there."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.core.model import Phase
from dispatcher.experiments.handle import ExperimentHandle
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store

LIMIT = 64
SEARCH = {
    "trialFunction": "balancing:train",
    "searchSpace": {"width": {"_type": "randint", "_value": [1, 13]}},
    "objectives": {"default": "maximize", "size": f"minimize <= {LIMIT}"},
    "maxTrialNumber": 24,
    "maxFailedTrialsInARow": 24,
}


def answer(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    "tuner",
    [
        {
            "name": "RegularizedEvolution",
            "classArgs": {"population_size": 6, "sample_size": 3, "survival": "rank"},
        },
        {"name": "NSGA-III", "classArgs": {"population_size": 4}},
    ],
    ids=lambda one: one["name"],
)
def test_a_search_by_two_objectives_within_a_bound(
    lab: Lab, tuner: dict[str, object], tmp_path: Path
) -> None:
    """Mutations: the tuner host is not given the objectives; a result that lacks one reaches the
    tuner, which raises; a trial beyond the bound is on the front."""
    folder = lab.create(tuner, **SEARCH)
    assert lab.run(folder)[0] is Phase.COMPLETED
    where = str(folder)
    trials = [one for one in ExperimentHandle.find(where).trials() if one.attempt]
    lacking = [one for one in trials if one.parameters["width"] % 4 == 3]
    assert lacking, "no trial left a number out: take another seed"
    for one in lacking:
        assert (one.outcome, one.value) == ("failed", None)
        assert one.error == "its result has no number 'size', which is an objective"
        assert one.attempt == 1
    told = {one.id: one.result for one in trials if one.value is not None}
    points = {n: (one["default"], -one["size"]) for n, one in told.items() if one["size"] <= LIMIT}
    front = {
        here
        for here in points.values()
        if not any(
            other != here and other[0] >= here[0] and other[1] >= here[1]
            for other in points.values()
        )
    }
    best = json.loads(answer("best", where, "--json"))
    assert best["objectives"] == {"default": "maximize", "size": "minimize"}
    numbers = {one["id"] for one in best["trials"]}
    assert {points[n] for n in numbers} == front
    assert len(numbers) == len(front)
    rows = list(
        csv.DictReader(io.StringIO(answer("experiment", "export", where, "--format", "csv")))
    )
    assert {int(row["trial"]) for row in rows if row["on_front"] == "true"} == numbers
    growth = json.loads(answer("plot", "hypervolume", where, "--json", "--reference", "default:0"))
    assert growth["reference"] == [0.0, LIMIT]
    assert growth["volumes"] == sorted(growth["volumes"])
    assert growth["volumes"][-1] > 0
    picture = tmp_path / "volume.png"
    answer("plot", "hypervolume", where, "--out", str(picture))
    assert picture.stat().st_size > 3000
    if tuner["name"] == "RegularizedEvolution":
        assert any(one.parent is not None for one in trials)
    assert check_store(folder / "journal.sqlite") == []
