"""Who uses the share: its owner, wherever we are root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest

from nfs_setup.cluster.asking import Access, as_owner
from nfs_setup.cluster.inventory import inventory_of
from nfs_setup.cluster.members import Inventory
from tests.unit.nfs_setup.cluster.pretended_cluster import places

SYSTEM = shutil.which("python3", path="/usr/bin:/bin")
_WHO = ("-c", "import os; print(os.getuid(), os.getgid(), os.getgroups())")


def owned(**share: str) -> Inventory:
    values = {
        "share": {"folder": "/srv/w", **share},
        "mount": {"point": "/mnt/w"},
        "server": "nas",
        "clients": [{"host": "one", "python": str(SYSTEM)}],
    }
    return inventory_of(values, places)


def prefix(inventory: Inventory, access: Access) -> tuple[str, ...]:
    return as_owner(inventory, inventory.clients[0], access)


def run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    assert SYSTEM is not None
    return subprocess.run(
        [*words, SYSTEM, *_WHO],
        capture_output=True,
        text=True,
        timeout=240,
        env={"PATH": os.defpath},
    )


def test_without_an_owner_or_root_it_is_who_logs_in() -> None:
    assert prefix(owned(), Access((), "x")) == ()
    assert prefix(owned(owner="1234"), Access((), "x", rootless="no sudo")) == ()
    words = prefix(owned(owner="1234"), Access(("sudo", "-n", "--"), "x"))
    assert words[:3] == ("sudo", "-n", "--")


@pytest.mark.skipif(os.geteuid() != 0 or SYSTEM is None, reason="only root can become others")
@pytest.mark.parametrize(
    "share, said",
    [
        ({"owner": "61234"}, "61234 61234 [61234]\n"),
        ({"owner": "61234", "group": "61235"}, "61234 61235 [61235]\n"),
        ({"owner": "nobody", "group": "61235"}, "65534 61235 [61235]\n"),
    ],
)
def test_root_becomes_the_owner(share: dict[str, str], said: str) -> None:
    ran = run(prefix(owned(**share), Access((), "x")))
    assert (ran.stdout, ran.stderr) == (said, "")


@pytest.mark.skipif(os.geteuid() != 0 or SYSTEM is None, reason="only root can become others")
def test_an_owner_whom_the_client_does_not_know_is_named() -> None:
    ran = run(prefix(owned(owner="no_such_user"), Access((), "x")))
    assert ran.returncode == 1
    assert ran.stderr == "there is no user 'no_such_user'\n"
