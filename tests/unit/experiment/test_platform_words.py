"""Words that name a platform, and what is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.snapshot import from_json, to_json

HEAD = """\
searchSpace: {x: {_type: uniform, _value: [0, 1]}}
tuner: {name: Random}
trialCommand: "true"
trialConcurrency: 1
"""


@pytest.mark.parametrize("written", ["null", "5", "[slurm]", "{slurm: 1}"])
def test_what_names_no_platform(errors_of: Callable[[str], list[str]], written: str) -> None:
    """Mutation: it is read as the usual platform, and only that one is named."""
    (error,) = errors_of(f"{HEAD}trainingService:\n  platform: {written}\n")
    assert error.startswith("e.yml:6:13: 'trainingService' has a 'platform' that must be a name")
    assert "slurm" in error


def test_a_place_that_outlives_everybody(errors_of: Callable[[str], list[str]]) -> None:
    """Mutation: it is told to a scheduler, which counts minutes in 32 bits."""
    service = "{platform: slurm, headAddress: 127.0.0.1, wallTime: 99999999999999999999h}"
    (error,) = errors_of(f"{HEAD}trainingService: {service}\n")
    assert "'trainingService.wallTime' is longer than ten years" in error


@pytest.mark.parametrize("platform", ["slurm", "ray", "kubernetes, image: i"])
@pytest.mark.parametrize("written", ["60", '"60"', "1.5"])
def test_a_wall_time_without_a_unit(
    errors_of: Callable[[str], list[str]], platform: str, written: str
) -> None:
    """Mutation: who means an hour, as with `sbatch --time=60`, gets a minute."""
    service = f"{{platform: {platform}, headAddress: 127.0.0.1, wallTime: {written}}}"
    errors = errors_of(f"{HEAD}trainingService: {service}\n")
    number = written.strip('"')
    (error,) = (each for each in errors if "wallTime" in each)
    assert "must have a unit: schedulers count minutes, and a number alone" in error
    assert f"write '{number}m' or '{number}s'" in error


def test_a_record_holds_seconds(tmp_path: Path) -> None:
    """Mutation: no experiment with a wall time can be resumed."""
    values = {
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(tmp_path),
        "trialConcurrency": 1,
        "trainingService": {"platform": "slurm", "wallTime": "1h"},
    }
    config = build_experiment(values)
    assert from_json(to_json(config)).services[0].wall_s == 3600.0
