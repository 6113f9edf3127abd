"""The mount below a path: whether it is shared, and what its client may cache.

Read from the kernel's table, so that nothing here waits for a server.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trial_runtime.mounts import MOUNTINFO, is_network, unescaped

#: The default of the kernel's NFS client, where the table names no time, in seconds.
_DEFAULT_CACHE_S: Final = 60.0
#: Seconds for which a table that was read is used again; reading it costs a load some time.
_KEPT_S: Final = 5.0


@dataclass(frozen=True)
class Mount:
    """A line of the table."""

    point: str
    kind: str  # such as "nfs4", "ext4"
    options: Mapping[str, str]  # of the mount and of the file system; "" where one has no value

    @property
    def shared(self) -> bool:
        """Whether other machines may write to it."""
        return is_network(self.kind) or self.kind == "autofs"

    @property
    def soft(self) -> bool:
        """Whether calls fail when the server does not answer, rather than wait."""
        return bool({"soft", "softerr"} & self.options.keys())

    @property
    def cached_s(self) -> float:
        """The time for which the client may show files and folders as they were, in seconds."""
        if not self.shared or "noac" in self.options:
            return 0.0
        return max(self._seconds(name) for name in ("acregmax", "acdirmax"))

    def _seconds(self, name: str) -> float:
        text = self.options.get("actimeo", self.options.get(name, ""))
        try:
            return float(text)
        except ValueError:
            return _DEFAULT_CACHE_S


def mount_of(path: str, *, mountinfo: Path = MOUNTINFO) -> Mount | None:
    """The mount that holds a path; None where the kernel's table names none.

    Args:
        path: a real path: links in it are not followed, as that might wait for a server.
        mountinfo: where the table is; another file in tests.
    """
    wanted = os.path.abspath(path)
    for mount in _table(mountinfo, int(time.monotonic() / _KEPT_S)):
        if wanted == mount.point or wanted.startswith(mount.point.rstrip("/") + "/"):
            return mount
    return None


@functools.lru_cache(maxsize=2)
def _table(mountinfo: Path, _now: int) -> tuple[Mount, ...]:
    """All mounts, the deepest first, and of those at one place the newest."""
    try:
        lines = mountinfo.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ()
    found = []
    for line in reversed(lines):
        head, separator, tail = line.partition(" - ")
        fields, more = head.split(" "), tail.split(" ")
        if separator and len(fields) >= 6 and len(more) >= 3:
            options = {
                name: value
                for text in (fields[5], more[2])
                for name, _, value in (one.partition("=") for one in text.split(","))
            }
            found.append(Mount(unescaped(fields[4]), more[0], options))
    return tuple(sorted(found, key=lambda mount: -len(mount.point)))
