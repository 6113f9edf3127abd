"""Folders that experiments have left on a machine, and which of them may go."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from dispatcher.backends.ssh.machine import Machine
from dispatcher.errors import PassingBackendError
from dispatcher.ssh import SshConnection, program_text
from trial_runtime.trial_wire import UNREADABLE

_PARTS = [Path(__file__).with_name(f"{name}_program.py") for name in ("processes", "past")]
_LIMIT_S = 1800.0
_DAY_S = 86400.0

T = TypeVar("T")


class Left(msgspec.Struct, frozen=True):
    """The folder of one worker of an experiment. ``age_s``: since something in it has changed;
    ``used``: a process there uses it; ``unfinished``: its agent has not ended of itself."""

    bytes: int
    age_s: float
    used: bool
    unfinished: bool = msgspec.field(name="told")


def what_is_left(connection: SshConnection, machine: Machine) -> dict[str, Left]:
    """The folders, by ``ID/WORKER``. Blocks for a walk through all. Raises ``BackendError``."""
    return _asked(connection, machine, dict[str, Left])


def remove(connection: SshConnection, machine: Machine, names: list[str]) -> list[str]:
    """Remove folders, but for those in use by now; returns the names of those that are gone.

    Args:
        connection: to the machine.
        machine: the one they lie on.
        names: as :func:`what_is_left` has them.

    Raises:
        BackendError: the machine does not answer, or not as it should.
    """
    return _asked(connection, machine, list[str], *names) if names else []


def why_it_stays(name: str, left: Left, *, days: float, experiment: str) -> str:
    """Why a folder is not removed, or nothing. Pure.

    Args:
        name: as ``ID/WORKER``.
        left: the facts of it.
        days: how long nothing may have changed there.
        experiment: the id of the only one to remove, whatever its age; empty for all.
    """
    if experiment and name.partition("/")[0] != experiment:
        return "another experiment"
    if left.used:
        return "in use"
    if experiment:
        return "its agent has not ended" if left.unfinished else ""
    return "" if left.age_s >= days * _DAY_S else "not old enough"


def _asked(connection: SshConnection, machine: Machine, kind: type[T], *names: str) -> T:
    argv = machine.command("-", machine.work_folder, *names)
    program = "\n".join([program_text("python_facts"), *(part.read_text() for part in _PARTS)])
    ran = connection.run(argv, stdin=program.encode(), limit_s=_LIMIT_S, most_bytes=16 << 20)
    lines = ran.out.splitlines()
    if not ran.ok or not lines:
        raise PassingBackendError(f"cannot be tidied: {ran.complaint()[-300:]}", where=machine.name)
    try:
        return msgspec.json.decode(lines[-1], type=kind)
    except UNREADABLE as error:
        raise PassingBackendError("answers what it should not", where=machine.name) from error
