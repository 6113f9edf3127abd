"""Folders that experiments have left on a machine."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dispatcher.remote_python.runner import RemotePython

_LIMIT_S = 1800.0
_DAY_S = 86400.0


class Left(msgspec.Struct, frozen=True):
    """The folder of one worker of an experiment. ``age_s``: since something in it has changed;
    ``used``: a process there uses it; ``unfinished``: its agent has not ended of itself."""

    bytes: int
    age_s: float
    used: bool
    unfinished: bool = msgspec.field(name="told")


def what_is_left(python: RemotePython, work_folder: str) -> dict[str, Left]:
    """The folders, by ``ID/WORKER``. Blocks for a walk through all. Raises ``BackendError``."""
    arguments = {"work_folder": work_folder, "remove": None}
    return python.ask("leftovers", arguments, dict[str, Left], limit_s=_LIMIT_S)


def remove(python: RemotePython, work_folder: str, names: Sequence[str]) -> list[str]:
    """Remove folders, but for those in use by now; returns the names of those that are gone.

    Args:
        python: that of the machine.
        work_folder: of the machine.
        names: as :func:`what_is_left` has them.

    Raises:
        BackendError: the machine does not answer, or not as it should.
    """
    arguments = {"work_folder": work_folder, "remove": list(names)}
    return python.ask("leftovers", arguments, list[str], limit_s=_LIMIT_S) if names else []


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
