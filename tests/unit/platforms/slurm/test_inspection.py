"""What is said of a cluster before anything starts there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.experiment.loader import build_experiment
from dispatcher.findings import Severity
from dispatcher.platforms.slurm.commands import CommandEnd
from dispatcher.platforms.slurm.inspection import (
    ANY_TRIALS,
    TrialsAsked,
    inspect_cluster,
    settings_in,
)
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from tests.unit.platforms.slurm.recorded import VERSIONS, exchanges

CONFIG = """\
Configuration data as of 2026-11-23T09:11:12
AccountingStorageType   = accounting_storage/{accounts}
BOOT_TIME               = 2026-11-23T09:10:52
ClusterName             = rig
KillWait                = 5 sec
SLURM_VERSION           = {version}

Slurmctld(primary) at ctld is UP
"""


class Cluster:
    """Answers as a controller does."""

    def __init__(self, *, accounts: str = "none", version: str = "22.05.8") -> None:
        self.config = CommandEnd(0, CONFIG.format(accounts=accounts, version=version).encode(), b"")
        self.refusal = b""
        self.partitions = CommandEnd(0, b"main*|up|infinite|3|1-infinite\n", b"")
        self.commands: list[list[str]] = []

    def run(self, command: Sequence[str], *, stdin: bytes = b"") -> CommandEnd:
        self.commands.append(list(command))
        if command[0] == "scontrol":
            return self.config
        if command[-1] == "--format=%P|%a|%l|%D|%s":
            return self.partitions
        if command[0] == "sinfo":
            return CommandEnd(0, b"203.0.113.7\n127.0.0.1\n203.0.113.7\n", b"")
        return CommandEnd(int(bool(self.refusal)), b"", self.refusal)

    def findings(
        self, trials: TrialsAsked = ANY_TRIALS, **keys: Any
    ) -> list[tuple[str, Severity, str, str]]:
        section = SlurmServiceConfig.model_validate({"platform": "slurm", **keys})
        found = inspect_cluster(section, self, trials)
        return [(each.topic, each.severity, each.text, each.hint) for each in found]

    def of_partitions(
        self, trials: TrialsAsked = ANY_TRIALS, **keys: Any
    ) -> list[tuple[Severity, str]]:
        return [each[1:3] for each in self.findings(trials, **keys) if each[0] == "partitions"]


def test_a_cluster_that_would_take_the_job() -> None:
    """Mutation: the look submits it."""
    cluster = Cluster()
    assert [x[:2] for x in cluster.findings(partition="gpu", gres="gpu:2")] == [
        ("cluster", Severity.OK),
        ("job", Severity.OK),
    ], "no partition of that name is listed, and the controller says more of it"
    tried = cluster.commands[-1]
    assert "--test-only" in tried
    assert {"--partition=gpu", "--gres=gpu:2"} <= set(tried), "what the file asks for"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_that_would_be_refused_is_a_problem_with_a_hint(version: str) -> None:
    cluster = Cluster()
    asked = ["sbatch", "--test-only", "-p", "nosuch", "--wrap", "true"]
    (cluster.refusal,) = [each.text for each in exchanges(version) if each.command == asked]
    topic, severity, text, hint = cluster.findings()[-1]
    assert (topic, severity) == ("job", Severity.PROBLEM)
    assert "Invalid partition name specified" in text
    assert "sinfo" in hint


def test_keys_that_are_ignored_are_named() -> None:
    """Slurm takes them without a word where it keeps no accounts."""
    (_, note, *_) = Cluster().findings(account="vision", qos="high")
    assert note[1:3] == (
        Severity.NOTE,
        "the cluster keeps no accounts, and ignores 'account' and 'qos'",
    )
    found = Cluster(accounts="slurmdbd").findings(account="vision")
    assert "accounts" not in [each[0] for each in found]


@pytest.mark.parametrize("version, severity", [("19.05.5", "note"), ("", "note"), ("24.11", "ok")])
def test_versions(version: str, severity: str) -> None:
    assert Cluster(version=version).findings()[0][1].value == severity


def test_limits_of_partitions_are_told_before_a_job_waits_for_ever() -> None:
    """A controller may take a job that its partition never begins. Mutations: that of another
    partition counts, that of the shortest does, or none."""
    cluster = Cluster()
    rows = (
        b"main*|up|1-00:00:00|3|1-infinite\nshort|up|30:00|3|1-infinite\n"
        b"long|up|infinite|3|1-infinite\nold|down|30:00|3|1-infinite\nno row\n"
    )
    cluster.partitions = CommandEnd(0, rows, b"")
    assert cluster.of_partitions(wallTime="24h") == [
        (Severity.OK, "main: jobs of 1-00:00:00 at most")
    ]
    ((severity, text),) = cluster.of_partitions(wallTime="25h")
    assert severity is Severity.PROBLEM
    assert text == (
        "'wallTime' is longer than a job may run (main: jobs of 1-00:00:00 at most): "
        "it would wait for ever"
    )
    ((severity, text),) = cluster.of_partitions(wallTime="1h", partition="short")
    assert (severity, "short: jobs of 30:00 at most" in text) == (Severity.PROBLEM, True)
    both = cluster.of_partitions(wallTime="1h", partition=["short", "long"])
    assert both == [(Severity.OK, "short: jobs of 30:00 at most; long: jobs without an end")], (
        "Slurm takes the one in which it may run"
    )
    ((severity, _),) = cluster.of_partitions(wallTime="1h", partition="short", qos="high")
    assert severity is Severity.NOTE, "which may lift the limit"
    ((severity, text),) = cluster.of_partitions(partition="old")
    assert (severity, text) == (Severity.NOTE, "old: jobs of 30:00 at most; not up: old")
    assert cluster.of_partitions(partition="nosuch") == [], "the controller refuses it"
    cluster.partitions = CommandEnd(1, b"", b"sinfo: error")
    assert cluster.of_partitions(wallTime="25h") == []


SIZES = CommandEnd(
    0, b"main*|up|30:00|3|1-infinite\nsmall|up|infinite|8|1-2\nlarge|up|infinite|2K|4\n", b""
)


@pytest.mark.parametrize(
    "nodes, keys, text",
    [
        (3, {}, ""),
        (4, {}, "main: 3 nodes"),
        (2, {"partition": "small"}, ""),
        (3, {"partition": "small"}, "small: 8 nodes, 2 for a job"),
        (4, {"partition": ["small", "large"]}, ""),
        (5, {"partition": ["small", "large"]}, "2 for a job; large: 2048 nodes, 4 for a job"),
        (4, {"partition": "nosuch"}, ""),
    ],
)
def test_more_nodes_than_a_job_may_have(nodes: int, keys: dict[str, Any], text: str) -> None:
    """A controller takes such a job where partitions enforce nothing, and never begins it.
    Mutations: only the nodes of a partition count; only the limit of its jobs does; one that is
    large enough does not help."""
    cluster = Cluster()
    cluster.partitions = SIZES
    wrong = [x for x in cluster.of_partitions(TrialsAsked(nodes), **keys) if x[0] != Severity.OK]
    assert len(wrong) == bool(text)
    if text:
        ((severity, said),) = wrong
        assert severity is Severity.PROBLEM
        assert said.startswith(f"'trialNodes' is {nodes}, more than a job may have (")
        assert text in said


def test_a_qos_may_lift_a_limit_and_adds_no_nodes() -> None:
    cluster = Cluster()
    cluster.partitions = SIZES
    high = {"partition": "small", "qos": "high"}
    assert cluster.of_partitions(TrialsAsked(3), **high)[0][0] is Severity.NOTE
    assert cluster.of_partitions(TrialsAsked(9), **high)[0][0] is Severity.PROBLEM


def test_trials_that_take_longer_than_a_job_may_run() -> None:
    """Each place would be given back unused. Mutation: only a 'wallTime' of the file counts."""
    cluster = Cluster()
    cluster.partitions = SIZES
    ((severity, said),) = cluster.of_partitions(TrialsAsked(lasts_s=1801.0))
    assert severity is Severity.PROBLEM
    assert said == (
        "a trial may take longer than a job may run (main: jobs of 30:00 at most): none would begin"
    )
    assert cluster.of_partitions(TrialsAsked(lasts_s=1800.0))[0][0] is Severity.OK
    assert cluster.of_partitions(TrialsAsked(lasts_s=1e6), partition="small")[0][0] is Severity.OK


def test_the_controller_is_asked_for_as_many_nodes_as_a_trial_has() -> None:
    cluster = Cluster()
    cluster.findings(TrialsAsked(3))
    assert "--nodes=3" in cluster.commands[-1]


def test_the_file_says_what_trials_need() -> None:
    """Mutation: the end of a trial takes no time."""
    file = {
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "trainingService": {"platform": "slurm", "headAddress": "127.0.0.1"},
    }
    assert TrialsAsked.of(build_experiment(file)) == ANY_TRIALS
    more = {"trialNodes": 2, "maxTrialDuration": "1h", "trialStopGrace": "30s"}
    asked = TrialsAsked.of(build_experiment({**file, **more}))
    assert asked.nodes == 2
    assert asked.lasts_s > 3630.0


def test_a_controller_that_is_away_is_an_error() -> None:
    cluster = Cluster()
    cluster.config = CommandEnd(
        1, b"", b"slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)"
    )
    with pytest.raises(PassingBackendError, match="Unable to contact"):
        cluster.findings()


def test_what_is_no_setting_is_passed_over() -> None:
    assert settings_in(b"\xff\nA = b c \nno setting\n= x\n") == {"A": "b c"}


def test_a_loopback_that_is_another_one_on_nodes() -> None:
    """Mutation: nobody hears from agents, since each looks for the head on its own node."""
    found = Cluster().findings(headAddress="127.0.0.1:7070")
    (ways,) = (each for each in found if each[0] == "ways")
    assert ways[1:3] == (
        Severity.PROBLEM,
        "'headAddress' is 127.0.0.1:7070: on 203.0.113.7 that is the node itself",
    )
