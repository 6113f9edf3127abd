"""A look at a real cluster before anything starts there."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.findings import Severity
from dispatcher.platforms.slurm.commands import CommandLineHere
from dispatcher.platforms.slurm.inspection import inspect_cluster
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from tests.support.slurm_cluster import SlurmCluster, why_not

pytestmark = [
    pytest.mark.needs("slurm"),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture
def look(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)

    def findings(**keys: Any) -> list[tuple[str, Severity, str]]:
        section = SlurmServiceConfig.model_validate({"platform": "slurm", **keys})
        found = list(inspect_cluster(section, CommandLineHere()))
        assert not cluster.run("squeue", "--noheader", "--states=all"), "nothing was submitted"
        return [(each.topic, each.severity, each.text) for each in found]

    return findings


def test_what_would_be_taken_is_well(look: Any) -> None:
    (cluster, job) = look(partition=["low", "high"], cpus=2, memory="1GB", wallTime="2h")
    assert cluster[:2] == ("cluster", Severity.OK)
    assert "rig, Slurm" in cluster[2]
    assert job[:2] == ("job", Severity.OK)


@pytest.mark.parametrize(
    "keys, words",
    [
        ({"partition": "nosuch"}, "Invalid partition name specified"),
        ({"constraint": "nosuch"}, "Invalid feature specification"),
        ({"gres": "gpu:9"}, "Invalid generic resource (gres) specification"),
        ({"memory": "9TB"}, "Requested node configuration is not available"),
        ({"options": {"nosuch": True}}, "unrecognized option '--nosuch'"),
    ],
)
def test_what_would_be_refused_is_a_problem(look: Any, keys: dict[str, Any], words: str) -> None:
    assert look(**keys)[-1][:2] == ("job", Severity.PROBLEM)
    assert words in look(**keys)[-1][2]


def test_keys_that_this_cluster_ignores_are_named(look: Any) -> None:
    assert ("accounts", Severity.NOTE) in [each[:2] for each in look(account="vision")]
