"""The machines that commands of ``bequeath hosts`` visit, by name or by experiment file."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
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

_HOST = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]\s]+\]|[^\s:@]+)(?::(?P<port>\d{1,5}))?")


class CheckTarget(NamedTuple):
    """A machine, and what is needed there."""

    host: ReachableHost
    needs: HostNeeds


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
    from dispatcher.head.probing import look_over
    from dispatcher.remote_python.findings import HostNeeds
    from dispatcher.wiring.host_needs import UNSAFE, host_needs, useful_modules, weights_marker

    if is_file(word):
        config = _read(Path(word))
        hosts = _hosts_of(config)
        targets = [CheckTarget(_Service(one), HostNeeds()) for one in look_over(config)]
        if not (hosts or targets):
            raise _without_machines(Path(word))
        token = closing.enter_context(weights_marker(config)) if hosts else ""
        return [CheckTarget(x, host_needs(config, place, token)) for place, x in hosts] + targets
    folders = {weights: ""} if weights else {}
    needs = HostNeeds(useful=useful_modules(), unsafe=UNSAFE, folders=folders)
    return [CheckTarget(host_named(word, jump=jump, python=python), needs)]
