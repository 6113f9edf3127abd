"""Further exports of the server that tests fill, turn and take back, unlike the share itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.nfs.conftest import Share
from tests.system.nfs.first import TRIAL
from tests.system.nfs.machine import Machine

_CLIENTS = ("one", "two")
#: File systems in memory have no number of their own that clients could know them by.
_NUMBERS = itertools.count(77)


@contextmanager
def small_export(share: Share, name: str, size: str, point: str) -> Iterator[str]:
    """A file system of its own on the server, exported, and mounted by both clients.

    By hand, since these are about what happens to an export and not about how it is set up.
    Yields its folder on the server.
    """
    folder = f"/srv/{name}"
    owner = f"uid={TRIAL.number},gid={TRIAL.number},mode=755"
    _must(
        share.server,
        f"mkdir -p {folder} && mount -t tmpfs -o size={size},{owner} {name} {folder}",
    )
    export(share, folder, "rw")
    for machine in (share.one, share.two):
        _must(machine, f"mkdir -p {point} && mount -t nfs -o vers=4.2,hard server:{folder} {point}")
    try:
        yield folder
    finally:
        for machine in (share.one, share.two):
            machine.run("umount", "-f", "-l", point)
        withdraw(share, folder)
        share.server.run("umount", "-l", folder)


_numbers: dict[str, int] = {}


def export(share: Share, folder: str, mode: str) -> None:
    """Export a folder to both clients, ``rw`` or ``ro``."""
    words = " ".join(f"{client}:{folder}" for client in _CLIENTS)
    number = _numbers.setdefault(folder, next(_NUMBERS))
    options = f"{mode},sync,no_subtree_check,fsid={number}"
    _must(share.server, f"exportfs -o {options} {words} && exportfs -f")


def withdraw(share: Share, folder: str) -> None:
    """Export it no more."""
    words = " ".join(f"{client}:{folder}" for client in _CLIENTS)
    share.server.run("sh", "-c", f"exportfs -u {words}; exportfs -f")


def _must(machine: Machine, script: str) -> None:
    answer = machine.run("sh", "-c", script)
    assert answer.code == 0, answer
