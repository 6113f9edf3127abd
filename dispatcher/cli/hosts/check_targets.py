"""The machines that commands of ``bequeath hosts`` visit, by name or by experiment file."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dispatcher.errors import BackendError, PermanentBackendError, UserError

if TYPE_CHECKING:
    from dispatcher.experiment.config import ExperimentConfig
    from dispatcher.findings import Finding
    from dispatcher.platforms.host import ReachableHost
    from dispatcher.platforms.inspecting import Inspected
    from dispatcher.remote_python.findings import HostNeeds
    from dispatcher.remote_python.leftovers import Left
    from dispatcher.ssh import SshTarget
    from dispatcher.wiring.places import Place

#: Machines that are looked at together.
_MOST_AT_ONCE = 8

_HOST = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]\s]+\]|[^\s:@]+)(?::(?P<port>\d{1,5}))?")


class CheckTarget(NamedTuple):
    """A machine, what is needed there, and the path of its section in an experiment file."""

    host: ReachableHost
    needs: HostNeeds
    at: tuple[str | int, ...] = ()


def target_named(text: str, jump: str = "") -> SshTarget:
    """Read ``[user@]host[:port]``, an IPv6 address in brackets.

    Raises:
        UserError: the text names no machine.
    """
    from dispatcher.ssh import SshTarget

    need_paramiko()
    match = _HOST.fullmatch(text)
    if match is None or int(match["port"] or 0) > 65535:
        raise UserError(f"{text!r} names no machine", hint="write [USER@]HOST[:PORT]")
    return SshTarget(
        host=match["host"].strip("[]"),
        port=int(match["port"] or 0),
        user=match["user"] or "",
        jump=target_named(jump) if jump else None,
    )


def host_named(
    text: str, *, jump: str = "", python: str = "python3", work_folder: str = "~/.bequeath"
) -> ReachableHost:
    """Return a machine that is reached by SSH.

    Args:
        text: see :func:`target_named`.
        jump: the machine by way of which it is reached; empty: none.
        python: the Python there.
        work_folder: the folder there that experiments use.

    Raises:
        UserError: the text names no machine.
    """
    from dispatcher.platforms.ssh.hosts import SshHost
    from dispatcher.platforms.ssh.machine import Machine

    target = target_named(text, jump)
    machine = Machine(text, lambda: target, python=python, work_folder=work_folder)
    return SshHost(machine, target.label)


def hosts_of_file(path: Path) -> tuple[ExperimentConfig, list[tuple[Place, ReachableHost]]]:
    """Read an experiment file; returns it, and its machines that can be visited.

    Raises:
        UserError: the file is none, or names no machine.
        PermanentBackendError: paramiko is not installed.
    """
    config = _read(path)
    hosts = _hosts_of(config)
    if not hosts:
        raise _without_machines(path)
    return config, hosts


def _read(path: Path) -> ExperimentConfig:
    from dispatcher.experiment import load_experiment
    from dispatcher.experiments.known_folders import with_default_folder

    return with_default_folder(load_experiment(path))


def _without_machines(path: Path) -> UserError:
    return UserError("names no machines", hint="see trainingService.machineList", where=str(path))


def _hosts_of(config: ExperimentConfig) -> list[tuple[Place, ReachableHost]]:
    from dispatcher.platforms.registry import platform_of
    from dispatcher.wiring.places import places

    hosts: list[tuple[Place, ReachableHost]] = []
    for place in places(config):
        try:
            host = platform_of(place.service).host(place.worker, place.part)
            if host is not None and host.name and host.label:
                hosts.append((place, host))
        except BackendError as error:
            hosts.append((place, _UnknownHost(place.worker, error)))
    return hosts


class _UnknownHost:
    """A machine that its platform, one of another package, cannot name: others are visited."""

    label = "?"

    def __init__(self, name: str, error: BackendError) -> None:
        self.name = name
        self._error = error

    def check(self, needs: HostNeeds) -> list[Finding]:
        raise self._error

    def leftovers(self) -> dict[str, Left]:
        raise self._error

    def remove(self, names: Sequence[str]) -> list[str]:
        raise self._error


class _Service:
    """A service that is no machine: what its platform finds of it."""

    label = "its scheduler"

    def __init__(self, inspected: Inspected) -> None:
        self.name = inspected.name
        self._findings = inspected.findings

    def check(self, needs: HostNeeds) -> list[Finding]:
        return list(self._findings)

    def leftovers(self) -> dict[str, Left]:
        return {}

    def remove(self, names: Sequence[str]) -> list[str]:
        return []


def need_paramiko() -> None:
    """Check that paramiko is installed, rather than fail where it is imported.

    Raises:
        PermanentBackendError: paramiko is not installed.
    """
    if importlib.util.find_spec("paramiko") is None:
        raise PermanentBackendError(
            "machines are reached by SSH with paramiko, which is not installed",
            hint="pip install 'bequeath[ssh]'",
        )


def is_file(word: str) -> bool:
    """Whether a word of the command line names an experiment file rather than a machine."""
    return Path(word).is_file() or word.endswith((".yml", ".yaml")) or os.sep in word


def check_targets(
    word: str, closing: ExitStack, *, python: str = "python3", weights: str = "", jump: str = ""
) -> list[CheckTarget]:
    """Return the machines for an argument of the command line. Reads experiment files, and asks
    the schedulers that they name.

    Args:
        word: an experiment file, or a machine.
        closing: removes the file, at its end, by which machines know the weights root.
        python: the Python there, for a machine.
        weights: the weights root there, for a machine; empty: not checked.
        jump: the machine by way of which it is reached; empty: none.

    Raises:
        UserError: the file is none, or names no machine.
        PermanentBackendError: paramiko is not installed.
    """
    from dispatcher.remote_python.findings import HostNeeds
    from dispatcher.wiring.host_needs import UNSAFE, useful_modules

    if is_file(word):
        targets = targets_of(_read(Path(word)), closing)
        if not targets:
            raise _without_machines(Path(word))
        return targets
    folders = {weights: ""} if weights else {}
    needs = HostNeeds(useful=useful_modules(), unsafe=UNSAFE, folders=folders)
    return [CheckTarget(host_named(word, jump=jump, python=python), needs)]


def targets_of(config: ExperimentConfig, closing: ExitStack) -> list[CheckTarget]:
    """Return the machines and services of an experiment file. Asks the schedulers that it names.

    Args:
        config: the file.
        closing: removes the file, at its end, by which machines know the weights root.
    """
    from dispatcher.head.probing import look_over
    from dispatcher.platforms.finding_places import path_of
    from dispatcher.remote_python.findings import HostNeeds
    from dispatcher.wiring.host_needs import host_needs, weights_marker

    hosts = _hosts_of(config)
    services = [
        CheckTarget(_Service(one), HostNeeds(), path_of(config, one.service))
        for one in look_over(config)
    ]
    token = closing.enter_context(weights_marker(config)) if hosts else ""
    machines = [
        CheckTarget(
            host, host_needs(config, place, token), path_of(config, place.service, place.part)
        )
        for place, host in hosts
    ]
    return machines + services


def look_at_all(targets: Sequence[CheckTarget]) -> list[list[Finding]]:
    """Look at machines and services; returns what is found of each. Blocks for minutes at most.

    Args:
        targets: some at once are looked at.
    """
    with ThreadPoolExecutor(max(1, min(_MOST_AT_ONCE, len(targets))), "hosts check") as pool:
        return list(pool.map(_look, targets))


def _look(target: CheckTarget) -> list[Finding]:
    from dispatcher.findings import Finding, Severity

    try:
        return target.host.check(target.needs)
    except BackendError as error:  # of another package's platform: other machines are looked at
        return [Finding("platform", Severity.PROBLEM, error.message, error.hint)]
