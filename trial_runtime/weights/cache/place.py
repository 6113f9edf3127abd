"""The cache of weights that this process uses, as its agent's environment variable names it."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from trial_runtime.mounts import network_type
from trial_runtime.weights.cache.cache import WeightsCache
from trial_runtime.weights.storage.mounted import mount_of
from trial_runtime.weights.storage.roots import CACHE_VARIABLE

_PLACE: Final = os.path.join("bequeath", "weights")


class CacheSettings(NamedTuple):
    """The value of the variable: ``auto`` or ``always``, the most bytes, and the folder (if empty,
    one is chosen), with colons between. Not set, or in another form: no cache. Where it is set,
    saves digest whole files for caches, even if they are those of other hosts (``auto:0:``)."""

    always: bool
    max_bytes: int
    folder: str


def cache_for(folder: str) -> WeightsCache | None:
    """The cache to read the weights in a folder through; None where they are read directly.

    Weights are read directly where no cache is configured, and, unless it is to be used always,
    on disks that are this machine's own. Looks at the table of mounts and touches nothing.
    """
    settings = _read(os.environ.get(CACHE_VARIABLE, ""))
    if settings is None or settings.max_bytes <= 0:
        return None
    if not settings.always:
        mount = mount_of(folder)
        if mount is None or not mount.shared:
            return None
    return WeightsCache(settings.folder or default_folder(), settings.max_bytes)


def default_folder() -> str:
    """A folder of this user on a disk of this host: in the cache folder of the user, or, where
    the home is shared between machines, below ``/var/tmp``."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if os.path.isabs(home) and network_type(home) is None:
        return os.path.join(home, _PLACE)
    return f"/var/tmp/bequeath-weights-{os.geteuid()}"  # noqa: S108 - refused unless it is ours


def _read(text: str) -> CacheSettings | None:
    when, _, rest = text.partition(":")
    size, _, folder = rest.partition(":")
    if when not in ("auto", "always") or not size.isdecimal():
        return None
    return CacheSettings(when == "always", int(size), folder)
