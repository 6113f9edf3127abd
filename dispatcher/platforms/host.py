"""A machine that commands of ours can visit without a trial there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from dispatcher.remote_python.findings import HostFinding, HostNeeds

_DAY_S = 86400.0


class Left(msgspec.Struct, frozen=True):
    """The folder of one worker of an experiment. ``age_s``: since something in it has changed;
    ``used``: a process there uses it; ``unfinished``: its agent has not ended of itself."""

    bytes: int
    age_s: float
    used: bool
    unfinished: bool = msgspec.field(name="told")


class ReachableHost(Protocol):
    """One machine, as ``hosts check`` and ``hosts tidy`` visit it. All methods but the names block.

    Attributes:
        name: that of its worker.
        label: its address, for people.
    """

    name: str
    label: str

    def check(self, needs: HostNeeds) -> list[HostFinding]:
        """Look whether trials can run there; what cannot be looked at is a finding, too.

        What its own section says (its Python, its folders) is put in the place of that of
        ``needs``.
        """
        ...

    def leftovers(self) -> dict[str, Left]:
        """Return the folders that experiments have left there, by ``ID/WORKER``. Raises
        ``BackendError``."""
        ...

    def remove(self, names: Sequence[str]) -> list[str]:
        """Remove folders, but for those in use by now; returns the names of those that are gone.
        Raises ``BackendError``."""
        ...


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
