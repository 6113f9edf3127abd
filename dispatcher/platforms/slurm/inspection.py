"""A look at a cluster before anything starts there: is it there, and would it take such a job?"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dispatcher.errors import BackendError
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.clusters.inspection import inspect_ways
from dispatcher.platforms.finding_places import keys_in
from dispatcher.platforms.slurm import script
from dispatcher.platforms.slurm.commands import CommandLine
from dispatcher.platforms.slurm.complaints import complaint
from dispatcher.platforms.slurm.listing import seconds_of
from dispatcher.platforms.slurm.section import SlurmServiceConfig

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

#: Prints of each partition its name (with a star at the one that jobs have if they name none),
#: whether it is up, and the limit of its jobs.
_PARTITIONS = ("sinfo", "--noheader", "--format=%P|%a|%l")


class Partition(NamedTuple):
    """A partition: whether jobs begin in it, and the limit of their time as Slurm prints it."""

    name: str
    is_usual: bool
    is_up: bool
    limit: str


def inspect_cluster(section: SlurmServiceConfig, shell: CommandLine) -> Iterator[Finding]:
    """Ask the controller for its settings, and whether it would take a job: none is submitted.

    Args:
        section: the service's part of the experiment file.
        shell: runs Slurm's commands.

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
    yield from _of_partitions(section, [] if answer.code else partitions_in(answer.out))
    trial_run = script.submit_command(section, "bequeath-probe", folder="/", log="/dev/null")
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
        if name and len(rest) == 2:
            usual, up = name.endswith("*"), rest[0] == "up"
            found[name] = Partition(name.removesuffix("*"), usual, up, rest[1])
    return list(found.values())


def _of_partitions(section: SlurmServiceConfig, all_: list[Partition]) -> Iterator[Finding]:
    """Tell the limits of those that jobs would wait in. Those that are not there are the
    controller's to refuse."""
    asked = [each for each in all_ if each.name in section.partition]
    if not section.partition:
        asked = [each for each in all_ if each.is_usual]
    if not asked:
        return
    shut = [each.name for each in asked if not each.is_up]
    limits = [seconds_of(each.limit) for each in asked]
    most = max((math.inf if each is None else each for each in limits), default=math.inf)
    told = "; ".join(f"{each.name}: {_limit(each)}" for each in asked)
    if section.wall_s is not None and section.wall_s > most:
        text = f"'wallTime' is longer than a job may run ({told}): it would wait for ever"
        hint = "a QOS may allow it all the same" if section.qos else "write a shorter one"
        severity = Severity.NOTE if section.qos else Severity.PROBLEM
        yield Finding("partitions", severity, text, hint, (("wallTime",),))
    elif shut:
        text = f"{told}; not up: {', '.join(shut)}"
        yield Finding("partitions", Severity.NOTE, text, "jobs wait there", (("partition",),))
    else:
        yield Finding("partitions", Severity.OK, told)


def _limit(partition: Partition) -> str:
    if seconds_of(partition.limit) is None:
        return "jobs without an end"
    return f"jobs of {partition.limit} at most"


def _refused(error: BackendError) -> Finding:
    text = f"a job as the file asks for would be refused: {error.message}"
    keys = keys_in(error.message, _KEYS)
    return Finding("job", Severity.PROBLEM, text, error.hint, keys)
