"""The mount a folder lies on, and what its options mean for weights on it.

Reads what the system lists of its mounts; needs no privileges and changes nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

#: Seconds for which a client may show an old attribute of a file, when the mount says
#: nothing (Linux, nfs(5): acdirmax). Readers of announced weights wait longer than this.
DEFAULT_ACDIRMAX_S = 60

#: How long readers wait for announced weights to become visible, at least, and for how much
#: longer than the mount caches folders (trial_runtime.weights.storage.patience).
READER_PATIENCE_S = 75
_MARGIN_S = 15

_NFS = frozenset({"nfs", "nfs4"})
_MEMORY = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True)
class Mount:
    """One mount: what is mounted, where, as which type, with which options."""

    device: str
    point: str
    kind: str
    options: tuple[str, ...]
    #: Which folder of its file system is seen there: another than "/" is a part of it.
    top: str = "/"

    @property
    def is_nfs(self) -> bool:
        """Whether it is NFS of any version."""
        return self.kind in _NFS

    def option(self, name: str) -> str | None:
        """Return the value of ``name=value``; an empty text for a bare option; None if absent."""
        for option in self.options:
            key, _, value = option.partition("=")
            if key == name:
                return value
        return None


@dataclass(frozen=True)
class Advice:
    """One sentence on a mount. ``trouble`` can cost results; ``note`` costs time or surprise."""

    level: Literal["trouble", "note"]
    text: str


def mount_of(path: Path) -> Mount | None:
    """Return the mount nearest above ``path``, which need not exist yet; None if none is listed."""
    import psutil

    real = os.path.realpath(path)
    best: Mount | None = None
    for part in psutil.disk_partitions(all=True):
        point = part.mountpoint
        below = real == point or real.startswith(point.rstrip("/") + "/")
        if below and (best is None or len(point) >= len(best.point)):
            best = Mount(part.device, point, part.fstype, tuple(part.opts.split(",")))
    return best


def reader_patience_s(mount: Mount) -> float:
    """Return the seconds that readers of weights wait on this mount for what was announced."""
    cached = _cached_s(mount) + _MARGIN_S if mount.is_nfs else 0
    return float(max(READER_PATIENCE_S, cached))


def advice_on(mount: Mount) -> tuple[Advice, ...]:
    """Return advice to heed before weights are kept there; empty if all is well."""
    found: list[Advice] = []
    if mount.option("ro") is not None:
        found.append(Advice("trouble", "it is mounted read-only: no trial can save weights"))
    if mount.kind in _MEMORY:
        found.append(Advice("trouble", "it is in memory: weights are gone after a restart"))
    if mount.is_nfs:
        found.extend(_advice_on_nfs(mount))
    return tuple(found)


def _cached_s(mount: Mount) -> int:
    cached = mount.option("acdirmax") or mount.option("actimeo")
    return int(cached) if cached and cached.isdigit() else DEFAULT_ACDIRMAX_S


def _advice_on_nfs(mount: Mount) -> list[Advice]:
    found: list[Advice] = []
    if mount.option("soft") is not None or mount.option("softerr") is not None:
        text = "'soft' gives an error to a trial whose server is away for a moment; use 'hard'"
        found.append(Advice("trouble", text))
    seconds = _cached_s(mount)
    if seconds > DEFAULT_ACDIRMAX_S:
        text = (
            f"folders may be shown as they were up to {seconds} s ago, and readers of weights wait "
            f"up to {reader_patience_s(mount):.0f} s; mount with acdirmax=60 or less"
        )
        found.append(Advice("note", text))
    if mount.option("noac") is not None:
        found.append(Advice("note", "'noac' is not needed and makes every access slow"))
    version = mount.option("vers") or mount.option("nfsvers") or ""
    if version.startswith(("2", "3")):
        found.append(Advice("note", f"NFS version {version}; 4.2 is better where it is there"))
    return found
