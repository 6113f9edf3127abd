"""Folders that experiments have left on a machine."""

from __future__ import annotations

from collections.abc import Sequence

from dispatcher.platforms.host import Left
from dispatcher.remote_python.runner import RemotePython

_LIMIT_S = 1800.0


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
