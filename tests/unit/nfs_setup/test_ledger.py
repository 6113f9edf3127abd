"""The ledger's file: machines that were set up by an earlier version are undone by a later one."""

from __future__ import annotations

import json

from nfs_setup.ledger import FILE, Entry, Ledger
from tests.unit.nfs_setup.pretended import Pretended


def test_the_keys_of_the_file_stay(host: Pretended) -> None:
    ledger = Ledger(host)
    run = ledger.begin("client", "/mnt/w")
    run.entries.append(Entry("file", "/etc/fstab", {"path": "/etc/fstab"}, shared=True))
    ledger.save()
    content = host.read(FILE)
    assert content is not None
    assert json.loads(content)["runs"][0]["entries"] == [
        {
            "step": "file",
            "words": "/etc/fstab",
            "data": {"path": "/etc/fstab"},
            "shared": True,
            "done": False,
        }
    ]
    assert Ledger(host).runs == [run]
