"""A check whether a folder lies on a file system that several machines share.

SQLite in WAL mode maps a file into the memory of each reader; on a network file system
that memory is not shared between machines and locks may be lost with their server, so a
store there can be torn without anybody noticing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dispatcher.errors import StoreError
from trial_runtime.mounts import MOUNTINFO, filesystem_type, is_network, type_of_mount

__all__ = [
    "OVERRIDE",
    "filesystem_type",
    "is_network",
    "refuse_network_filesystem",
    "type_of_mount",
]

#: Set to 1 by somebody who knows that only one machine mounts the folder, and its risks.
OVERRIDE: Final = "BEQUEATH_ALLOW_NETWORK_STORE"


def refuse_network_filesystem(
    folder: Path, *, allow: bool | None = None, mountinfo: Path = MOUNTINFO
) -> None:
    """Raise ``StoreError`` if the folder lies on a network file system.

    Args:
        folder: an existing folder.
        allow: whether such a folder is taken all the same; by default what the environment
            variable :data:`OVERRIDE` says.
        mountinfo: where the kernel lists its mounts; another file in tests.
    """
    if allow is None:
        allow = os.environ.get(OVERRIDE) == "1"
    kind = filesystem_type(folder, mountinfo=mountinfo)
    if allow or kind is None or not is_network(kind):
        return
    raise StoreError(
        f"the store cannot lie on a network file system ({kind}): its locks and its shared "
        "memory do not work across machines, so the journal could be torn",
        hint="set experimentWorkingDirectory to a local disk of this machine; "
        "the weights root may stay on the network",
        where=str(folder),
    )
