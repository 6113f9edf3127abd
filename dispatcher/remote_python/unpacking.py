"""Archives and wheels sent to a machine and unpacked there."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from dispatcher.remote_python.errors import HostDiskFull, TransferFailed
from dispatcher.remote_python.runner import RemotePython

UNPACK_S = 3600.0

_NO_SPACE = {"ENOSPC", "EDQUOT"}


class _Placed(msgspec.Struct, frozen=True):
    state: str = ""
    error: str = ""
    text: str = ""


def unpack(
    python: RemotePython,
    archive: Path,
    digest: str,
    folder: str,
    *,
    verb: Literal["unpack", "unwheel"] = "unpack",
) -> bool:
    """Send an archive and unpack it into ``folder``, which appears whole or not at all.

    Several may do the same at once. Returns False if the folder was there already.

    Args:
        python: runs there.
        archive: a tar file here, or a wheel.
        digest: SHA-256 of its content, in hex; a wheel's is checked before it is unpacked.
        folder: the one to make there; ``~`` stands for the home folder.
        verb: ``unwheel`` for a wheel.

    Raises:
        HostDiskFull: no room there; nothing is left behind.
        TransferFailed: the folder cannot be written, or what arrived is damaged.
        BackendError: the connection or the machine is in the way.
    """
    arguments = {"folder": folder, "digest": digest}
    with archive.open("rb") as file:
        placed = python.ask(verb, arguments, _Placed, data=file, limit_s=UNPACK_S)
    if not placed.error:
        return placed.state == "unpacked"
    place = f"{python.name}:{folder}"
    if placed.error in _NO_SPACE:
        raise HostDiskFull("no space left there for the code", where=place)
    raise TransferFailed(f"the code cannot be unpacked: {placed.text}", where=place)
