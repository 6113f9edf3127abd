"""Archives that are brought to machines, named by their content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trial_runtime
from dispatcher.code_archive import pack_code, scan_code
from dispatcher.wheelhouse import WheelCache


@dataclass(frozen=True)
class Archive:
    """A tar file on this machine's disk, and the digest under which machines keep its content."""

    digest: str
    path: Path


@dataclass(frozen=True)
class Archives:
    """All that is brought to machines. ``runtime`` is ``trial_runtime``, all of ours that a machine
    needs; ``code`` the trials'; ``wheels`` has the modules that a machine's Python may lack."""

    runtime: Archive
    code: Archive
    wheels: WheelCache = field(default_factory=WheelCache)


def pack_all(
    code: Path,
    into: Path,
    *,
    excluded: Sequence[Path],
    most_files: int,
    most_bytes: int,
    secrets: Sequence[Path] = (),
) -> Archives:
    """Pack the runtime and a code directory into the private folder ``into``. Reads every file.

    Args:
        code: the code directory.
        into: made if it is missing.
        excluded: folders that never belong to it.
        most_files: how many files there may be.
        most_bytes: how many bytes they may have.
        secrets: files that hold a secret, and so are not sent.

    Raises:
        UserError: the code is too much, or cannot be read as code.
        OSError: ``into`` cannot be written.
    """
    into.mkdir(mode=0o700, exist_ok=True)
    into.chmod(0o700)  # that of a version before was open
    listing = scan_code(
        code, excluded=excluded, most_files=most_files, most_bytes=most_bytes, secrets=secrets
    )
    packed = pack_code(listing, into / "code.tar")
    ours = pack_code(scan_code(Path(trial_runtime.__file__).parent), into / "runtime.tar")
    return Archives(
        runtime=Archive(ours.digest, into / "runtime.tar"),
        code=Archive(packed.digest, into / "code.tar"),
    )
