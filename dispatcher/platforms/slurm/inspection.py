"""A look at a cluster before anything starts there: is it there, and would it take such a job?"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Self

from dispatcher.core.settings import HAND_IN_S
from dispatcher.errors import BackendError
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.clusters.inspection import inspect_ways
from dispatcher.platforms.finding_places import keys_in
from dispatcher.platforms.slurm import script
from dispatcher.platforms.slurm.commands import CommandLine
from dispatcher.platforms.slurm.complaints import complaint
from dispatcher.platforms.slurm.listing import seconds_of
from dispatcher.platforms.slurm.section import SlurmServiceConfig

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys

#: The oldest version whose commands say what we read.
OLDEST = (20, 11)

#: Words of a controller that refuses a job, and the keys that they are about.
_KEYS = (
    ("account", "account"),
    ("qos", "qos"),
    ("partition", "partition"),
    ("reservation", "reservation"),
    ("feature", "constraint"),
    ("gres", "gres"),
    ("time", "wallTime"),
    ("memory", "memory"),
    ("cpu", "cpus"),
    ("license", "options"),
    ("option", "options"),
    ("node count", "trialNodes"),
    ("node configuration", "gres"),
    ("node configuration", "memory"),
    ("node configuration", "cpus"),
    ("node configuration", "constraint"),
)

_VERSION = re.compile(r"(\d+)\.(\d+)")
_SETTING = re.compile(r"^(\w+)\s*=\s*(.*?)\s*$", re.MULTILINE)

#: A count as sinfo prints it, and the size of jobs in nodes: ``4``, ``1-4``, ``1-infinite``.
_COUNT = re.compile(r"(\d+)(K?)")

#: Prints of each partition its name (with a star at the one that jobs have if they name none),
#: whether it is up, the limit of its jobs, how many nodes it has, and how many a job may have.
_PARTITIONS = ("sinfo", "--noheader", "--format=%P|%a|%l|%D|%s")


class Partition(NamedTuple):
    """A partition: whether jobs begin in it, the limit of their time as Slurm prints it, its nodes,
    and how many of them a job may have; infinite where that is not bounded, or not known."""

    name: str
    is_usual: bool
    is_up: bool
    limit: str
    nodes: float = math.inf
    most: float = math.inf


class TrialsAsked(NamedTuple):
    """The trials of an experiment, as far as a job must be large and long enough for them.

    ``nodes``: of each. ``lasts_s``: what one may take, with its end (seconds); 0: nobody knows.
    """

    nodes: int = 1
    lasts_s: float = 0.0

    @classmethod
    def of(cls, experiment: AllKeys) -> Self:
        """Return those of an experiment file."""
        longest_s, end_s = experiment.max_trial_duration, experiment.trial_stop_grace + HAND_IN_S
        return cls(experiment.trial_nodes, 0.0 if longest_s is None else longest_s + end_s)


#: Those of a file of which nothing but a section is known.
ANY_TRIALS = TrialsAsked()


def inspect_cluster(
    section: SlurmServiceConfig, shell: CommandLine, trials: TrialsAsked = ANY_TRIALS
) -> Iterator[Finding]:
    """Ask the controller for its settings, and whether it would take a job: none is submitted.

    Args:
        section: the service's part of the experiment file.
        shell: runs Slurm's commands.
        trials: what a job is to be large and long enough for.

    Raises:
        BackendError: the commands are not there, or the controller does not answer.
    """
    answer = shell.run(["scontrol", "show", "config"])
    if answer.code:
        raise complaint("scontrol", answer.code, answer.err, where="slurm")
    settings = settings_in(answer.out)
    yield from _of_settings(section, settings)
    if section.login is not None:
        yield from _of_login_node(section, shell)
    yield from inspect_ways(section, _addresses(shell))
    answer = shell.run(_PARTITIONS)
    yield from _of_partitions(section, trials, [] if answer.code else partitions_in(answer.out))
    trial_run = script.submit_command(
        section, "bequeath-probe", folder="/", log="/dev/null", nodes=trials.nodes
    )
    answer = shell.run([*trial_run, "--test-only"], stdin=b"#!/bin/sh\n")
    if answer.code:
        error = complaint("sbatch", answer.code, answer.err, where="slurm")
        yield _refused(error)
    else:
        yield Finding("job", Severity.OK, "a job as the file asks for would be taken")


def _of_login_node(section: SlurmServiceConfig, shell: CommandLine) -> Iterator[Finding]:
    """Look for what must be at the same paths there, as far as one node tells of the others."""
    wanted = [("-d", str(section.shared_folder), "'sharedFolder'")]
    if section.python is not None and section.python.startswith("/"):
        wanted.append(("-x", section.python, "'python'"))
    for kind, path, key in wanted:
        if shell.run(["test", kind, path]).code:
            text = f"{key} is {path}, which the login node does not have"
            hint = "its path must be the same there"
            yield Finding("folders", Severity.PROBLEM, text, hint, ((key.strip("'"),),))
    if section.python is None:
        text = f"'python' is not given: jobs would run {sys.executable}, as on this machine"
        yield Finding("python", Severity.NOTE, text, "name the one that nodes have")


def _addresses(shell: CommandLine) -> Iterator[str]:
    """The addresses of the nodes; none where the controller does not say them."""
    answer = shell.run(["sinfo", "--noheader", "--Node", "--format=%o"])
    if not answer.code:
        yield from answer.out.decode(errors="replace").split()


def settings_in(text: bytes) -> dict[str, str]:
    """Read the settings in what ``scontrol show config`` prints."""
    return dict(_SETTING.findall(text.decode(errors="replace")))


def _of_settings(section: SlurmServiceConfig, settings: Mapping[str, str]) -> Iterator[Finding]:
    version = settings.get("SLURM_VERSION", "")
    name = settings.get("ClusterName", "?")
    match = _VERSION.match(version)
    if match is None:
        yield Finding("cluster", Severity.NOTE, f"{name}, of a version that it does not name")
    elif tuple(map(int, match.groups())) < OLDEST:
        text = f"{name} has Slurm {version}, which is older than any that was tried"
        yield Finding("cluster", Severity.NOTE, text, "texts of 20.11 to 24.11 are read")
    else:
        yield Finding("cluster", Severity.OK, f"{name}, Slurm {version}")
    accounts = settings.get("AccountingStorageType", "")
    ignored = [key for key, value in (("account", section.account), ("qos", section.qos)) if value]
    if accounts.endswith("/none") and ignored:
        keys = " and ".join(f"'{key}'" for key in ignored)
        text = f"the cluster keeps no accounts, and ignores {keys}"
        yield Finding("accounts", Severity.NOTE, text)


def partitions_in(text: bytes) -> list[Partition]:
    """Read the partitions in what ``sinfo`` prints; lines that are no rows are passed over."""
    found = {}
    for line in text.decode(errors="replace").splitlines():
        name, *rest = line.strip().split("|")
        if name and len(rest) == 4:
            usual, up = name.endswith("*"), rest[0] == "up"
            size = rest[3].rpartition("-")[2]
            counts = _count_of(rest[2]), _count_of(size)
            found[name] = Partition(name.removesuffix("*"), usual, up, rest[1], *counts)
    return list(found.values())


def _count_of(text: str) -> float:
    match = _COUNT.fullmatch(text)
    return math.inf if match is None else float(match[1]) * (1024 if match[2] else 1)


def _of_partitions(
    section: SlurmServiceConfig, trials: TrialsAsked, all_: list[Partition]
) -> Iterator[Finding]:
    """Tell the limits of those that jobs would wait in. Those that are not there are the
    controller's to refuse."""
    asked = [each for each in all_ if each.name in section.partition]
    if not section.partition:
        asked = [each for each in all_ if each.is_usual]
    if not asked:
        return
    yield from _of_sizes(section, trials.nodes, asked)
    shut = [each.name for each in asked if not each.is_up]
    limits = [seconds_of(each.limit) for each in asked]
    most = max((math.inf if each is None else each for each in limits), default=math.inf)
    told = "; ".join(f"{each.name}: {_limit(each)}" for each in asked)
    if section.wall_s is not None and section.wall_s > most:
        text = f"'wallTime' is longer than a job may run ({told}): it would wait for ever"
        yield _beyond(section, text, "write a shorter one", "wallTime")
    elif section.wall_s is None and trials.lasts_s > most:
        text = f"a trial may take longer than a job may run ({told}): none would begin"
        hint = "write a shorter 'maxTrialDuration', or name another partition"
        yield _beyond(section, text, hint, "maxTrialDuration")
    elif shut:
        text = f"{told}; not up: {', '.join(shut)}"
        yield Finding("partitions", Severity.NOTE, text, "jobs wait there", (("partition",),))
    else:
        yield Finding("partitions", Severity.OK, told)


def _of_sizes(section: SlurmServiceConfig, nodes: int, asked: list[Partition]) -> Iterator[Finding]:
    """Yield that no job may have as many nodes as a trial needs."""
    text = "; ".join(f"{each.name}: {_size(each)}" for each in asked)
    text = f"'trialNodes' is {nodes}, more than a job may have ({text}): it would wait for ever"
    hint = "write fewer, or name another partition"
    if nodes > max(each.nodes for each in asked):
        yield Finding("partitions", Severity.PROBLEM, text, hint, (("trialNodes",),))
    elif nodes > max(min(each.nodes, each.most) for each in asked):
        yield _beyond(section, text, hint, "trialNodes")


def _beyond(section: SlurmServiceConfig, text: str, hint: str, key: str) -> Finding:
    """The finding that a limit of the partitions is passed, which a QOS may lift."""
    if section.qos:
        hint = "a QOS may allow it all the same"
    severity = Severity.NOTE if section.qos else Severity.PROBLEM
    return Finding("partitions", severity, text, hint, ((key,),))


def _size(partition: Partition) -> str:
    few = f"{partition.nodes:g} nodes" if math.isfinite(partition.nodes) else "nodes"
    return few if partition.most >= partition.nodes else f"{few}, {partition.most:g} for a job"


def _limit(partition: Partition) -> str:
    if seconds_of(partition.limit) is None:
        return "jobs without an end"
    return f"jobs of {partition.limit} at most"


def _refused(error: BackendError) -> Finding:
    text = f"a job as the file asks for would be refused: {error.message}"
    keys = keys_in(error.message, _KEYS)
    return Finding("job", Severity.PROBLEM, text, error.hint, keys)
