"""A look at a real cluster before anything starts there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dispatcher.findings import Severity
from dispatcher.platforms.slurm.commands import CommandLineHere
from dispatcher.platforms.slurm.inspection import ANY_TRIALS, TrialsAsked, inspect_cluster
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from tests.engines.slurm.conftest import ROOT
from tests.support.slurm_cluster import SlurmCluster, why_not

pytestmark = [
    pytest.mark.needs("slurm"),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture
def look(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)

    def findings(
        *, trials: TrialsAsked = ANY_TRIALS, **keys: Any
    ) -> list[tuple[str, Severity, str]]:
        section = SlurmServiceConfig.model_validate({"platform": "slurm", **keys})
        found = list(inspect_cluster(section, CommandLineHere(), trials))
        assert not cluster.run("squeue", "--noheader", "--states=all"), "nothing was submitted"
        return [(each.topic, each.severity, each.text) for each in found]

    return findings


def test_what_would_be_taken_is_well(look: Any) -> None:
    (cluster, parts, job) = look(partition=["low", "high"], cpus=2, memory="1GB", wallTime="2h")
    assert cluster[:2] == ("cluster", Severity.OK)
    assert "rig, Slurm" in cluster[2]
    assert parts[:2] == ("partitions", Severity.OK)
    assert sorted(parts[2].split("; ")) == ["high: jobs without an end", "low: jobs without an end"]
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


def test_trials_that_are_too_large_or_too_long_are_known_before(
    look: Any, cluster: SlurmCluster
) -> None:
    """The cluster has three nodes. Mutation: the columns of sinfo are others."""
    of_sinfo = cluster.run("sinfo", "--noheader", "--format=%P|%a|%l|%D|%s", "--partition=main")
    assert of_sinfo == "main*|up|infinite|3|1-infinite"
    assert look(trials=TrialsAsked(3))[-1][:2] == ("job", Severity.OK)
    parts = [each[1:] for each in look(trials=TrialsAsked(4)) if each[0] == "partitions"]
    text = "'trialNodes' is 4, more than a job may have (main: 3 nodes): it would wait for ever"
    assert parts[0] == (Severity.PROBLEM, text)


FILE = """\
experimentName: lab
searchSpace: {x: {_type: choice, _value: [1]}}
tuner: {name: Random}
trialCommand: "true"
trialConcurrency: 1
maxTrialNumber: 1
experimentWorkingDirectory: BASE
trainingService:
  platform: slurm
  headAddress: 127.0.0.1
  probe: PROBE
  python: PYTHON
  SECTION
"""


@pytest.mark.parametrize(
    "section, key, words",
    [
        ("partition: nosuch", "nosuch", "Invalid partition name specified"),
        ("gres: [gpu:9]", "[gpu:9]", "Invalid generic resource"),
        ("options: {nosuch: true}", "{nosuch", "unrecognized option"),
        ("cpus: 1", "/no/python", "ended without an answer"),
    ],
)
def test_what_is_wrong_has_the_place_of_its_key(
    cluster: SlurmCluster, tmp_path: Path, section: str, key: str, words: str
) -> None:
    """What the controller refuses, and what a probe finds. Mutations: it has no place; that of the
    service; that of another key."""
    probed = key == "/no/python"
    text = FILE.replace("BASE", str(tmp_path)).replace("SECTION", section)
    text = text.replace("PROBE", str(probed).lower())
    text = text.replace("PYTHON", "/no/python" if probed else sys.executable)
    file = tmp_path / "lab.yml"
    file.write_text(text)
    said = subprocess.run(
        [sys.executable, "-m", "dispatcher.cli", "validate", "--connect", str(file)],
        env={**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        cwd=tmp_path,
    )
    line = next(n for n, each in enumerate(text.splitlines(), 1) if key in each)
    column = text.splitlines()[line - 1].index(key) + 1
    assert said.returncode == 1, said.stdout + said.stderr
    found = [each for each in said.stdout.splitlines() if words in each]
    assert found, said.stdout
    assert found[0].startswith(f"{file}:{line}:{column}: slurm: problem: "), found


def test_each_node_of_an_allocation_is_looked_over(cluster: SlurmCluster, tmp_path: Path) -> None:
    """The second node of a job has a Python that lacks a module. Mutations: only the first node of
    a probe is looked over; one job for each node."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "zmq.py").write_text("raise ImportError('torn')")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$SLURM_PROCID" = 1 ] && export PYTHONPATH={tmp_path}/broken:$PYTHONPATH\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    text = FILE.replace("BASE", str(tmp_path)).replace("SECTION", "cpus: 1")
    text = text.replace("PROBE", "true").replace("PYTHON", str(python))
    file = tmp_path / "lab.yml"
    file.write_text(text + "trialNodes: 2\n")
    said = subprocess.run(
        [sys.executable, "-m", "dispatcher.cli", "validate", "--connect", str(file)],
        env={**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        cwd=tmp_path,
    )
    assert said.returncode == 1, said.stdout + said.stderr
    (problem,) = [each for each in said.stdout.splitlines() if ": problem: " in each]
    assert "modules: on n" in problem
    assert "zmq" in problem
    assert said.stdout.count("reaches the head") == 1
    assert "gpus: none" in said.stdout
    names = cluster.run("squeue", "--noheader", "--states=all", "--format=%j|%D").split()
    sizes = [each.split("|")[1] for each in names if "-probe-" in each]
    assert sizes.count("2") == 1, "one job with both nodes"
