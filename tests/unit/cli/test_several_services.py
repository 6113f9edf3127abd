"""A file with several platforms: what is filled first is said before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.cli.conftest import Shell


def written(folder: Path, *services: dict[str, Any]) -> str:
    file = folder / "experiment.yml"
    settings = {
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialConcurrency": 4,
        "maxTrialNumber": 1,
        "tuner": {"name": "Random"},
        "weightsRoot": str(folder),
        "trainingService": list(services),
    }
    file.write_text(json.dumps(settings))
    return str(file)


def test_the_cheapest_is_named_first(bequeath: Shell, tmp_path: Path) -> None:
    """Mutations: the order of the file; the cost of a machine is not its own."""
    file = written(
        tmp_path,
        {
            "platform": "slurm",
            "slots": 2,
            "allocations": {"min": 0, "max": 8},
            "headAddress": "127.0.0.1",
            "cost": 2,
        },
        {"platform": "local", "slots": 1},
        {
            "platform": "ssh",
            "cost": 1,
            "slots": 3,
            "machineList": [{"host": "a"}, {"host": "b", "cost": 0.5}],
        },
    )
    said = bequeath("validate", file).out
    line = next(each for each in said.splitlines() if "filled first" in each)
    order = "local (1), then b (3, cost 0.5), then a (3, cost 1), then slurm (8 × 2, cost 2)"
    assert order in " ".join(line.split())
    looked = json.loads(bequeath("doctor", file, "--json").out)["findings"]
    assert f"filled first: {order}" in [each["text"] for each in looked]


def test_without_a_cost_nothing_comes_first(bequeath: Shell, tmp_path: Path) -> None:
    machines = [{"host": "a"}, {"host": "b"}]
    file = written(
        tmp_path, {"platform": "local", "slots": 1}, {"platform": "ssh", "machineList": machines}
    )
    said = " ".join(bequeath("validate", file).out.split())
    assert "filled local (1), ssh (2 × 4): none before another, by 'cost'" in said
    looked = json.loads(bequeath("doctor", file, "--json").out)["findings"]
    (found,) = [each for each in looked if each["topic"] == "places"]
    assert found["level"] == "note"


def test_of_one_kind_of_places_nothing_is_said(bequeath: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, {"platform": "ssh", "machineList": [{"host": "a"}, {"host": "b"}]})
    assert "filled" not in bequeath("validate", file).out
    looked = json.loads(bequeath("doctor", file, "--json").out)["findings"]
    assert "places" not in [each["topic"] for each in looked]
