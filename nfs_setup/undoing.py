"""The function that takes back each kind of step. It tolerates a step that was half done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nfs_setup.host import Host
from nfs_setup.ledger import Entry, Ledger
from nfs_setup.step_commands import undo_command
from nfs_setup.step_file import undo_file
from nfs_setup.step_folder import undo_folder
from nfs_setup.step_mount import undo_mount
from nfs_setup.step_packages import undo_packages
from nfs_setup.step_service import undo_service

_Undo = Callable[[Host, Ledger, dict[str, Any]], str]

_BY_KIND: dict[str, _Undo] = {
    "command": undo_command,
    "file": undo_file,
    "folder": undo_folder,
    "mount": undo_mount,
    "packages": undo_packages,
    "service": undo_service,
}


def take_back(host: Host, ledger: Ledger, entry: Entry) -> str:
    """Undo one entry; it stays in the ledger until the caller removes it.

    Args:
        host: the machine.
        ledger: keeps contents that were replaced.
        entry: the step, with what was noted before it was made.

    Returns:
        Why something of it was kept on purpose; an empty text if nothing was.

    Raises:
        SetupError: if it cannot be undone.
        OSError: if the system refuses.
    """
    return _BY_KIND[entry.step](host, ledger, entry.data)
