"""Trying a remote root out before anything starts: a token goes there and comes back."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final

from trial_runtime.weights.remote.address import RemoteRoot
from trial_runtime.weights.remote.faults import RemoteRefused
from trial_runtime.weights.remote.opening import open_filesystem
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.retrying import Persistence

_FOLDER: Final = ".probe"


def probe(
    root: RemoteRoot,
    *,
    opened: Callable[[RemoteRoot], tuple[Any, str]] = open_filesystem,
) -> None:
    """Write, read, list and remove a token. Blocks for the network, and tries once.

    Raises:
        BadRoot, MissingExtra: the root cannot be opened from here at all.
        RemoteRefused: one of the four is not allowed, or does not do what it says.
        RemoteUnavailable: nobody answers.
    """
    place = Place(root, persistence=Persistence(0.0), opened=opened)
    token = secrets.token_hex(8)
    name = f"{_FOLDER}/{token}"
    try:
        place.put_bytes(token.encode(), name)
        if place.read(name, 1024) != token.encode():
            raise _not(root, "what was written is not what is read")
        if name not in place.listing(_FOLDER):
            raise _not(root, "what was written is not listed")
        place.remove(name)
        if place.size(name) is not None:
            raise _not(root, "what was removed is still there")
        place.remove_folder(_FOLDER)
    finally:
        place.close()


def _not(root: RemoteRoot, text: str) -> RemoteRefused:
    return RemoteRefused(
        f"cannot hold weights: {text}",
        hint="weights need a store that shows what was written",
        where=root.shown,
    )
