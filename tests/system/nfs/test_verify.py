"""``bequeath nfs verify`` on real NFS: a clean share passes, each fault of another is named."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest

from nfs_setup.verify import Level, Place, Plan, facts, judged, survey
from tests.system.nfs.answering import AnsweringGuest
from tests.system.nfs.conftest import Share
from tests.system.nfs.rig import Machine, why_not

pytestmark = [
    pytest.mark.extended,
    pytest.mark.needs("nfs"),
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

#: For how long a client of Linux believes at least what it knows of a folder (nfs(5): acdirmin).
_REMEMBERED_S = 30.0

#: (check, level, what is said)
Found = set[tuple[str, str, str]]


def verify(machine: Machine, folder: str, *, root: bool = False) -> tuple[int, Found]:
    """The command as a person types it, as the trials' user: its exit code and what does not
    pass."""
    argv = machine.python_argv("-m", "dispatcher.cli", "nfs", "verify", folder, "--quick", "--json")
    done = machine.run(*(argv if root else machine.user_argv(*argv)), limit_s=280)
    assert done.out.startswith("{"), done
    found = json.loads(done.out)["findings"]
    return done.code, {
        (f["check"], f["level"], f["seen"]) for f in found if f["level"] not in ("passes", "slow")
    }


def named(found: Found, check: str, level: str, words: str) -> bool:
    return any((c, how) == (check, level) and words in seen for c, how, seen in found)


@contextlib.contextmanager
def exported(server: Machine, folder: str, options: str) -> Iterator[None]:
    """The share is exported to ``one`` with other options for a while."""
    changed = server.run("exportfs", "-i", "-o", f"{options},no_subtree_check", f"one:{folder}")
    assert changed.code == 0, changed
    yield
    restored = server.run("exportfs", "-ra")
    assert restored.code == 0, restored


def test_a_clean_share_passes_from_two_clients(share: Share) -> None:
    peers = [AnsweringGuest(client) for client in (share.one, share.two)]
    found = survey([Place(peer, share.point) for peer in peers], Plan(big_bytes=8 << 20))
    for peer in peers:
        peer.close()
    findings = judged(found)
    assert [f for f in findings if f.level is Level.WRONG] == []
    assert [lock.tried.refused for lock in found.locks if isinstance(lock.tried, facts.Held)] == [
        *(True, True)  # a lock of one client keeps the other out
    ]
    one, two = found.machines
    for reader, writer in ((one, "two"), (two, "one")):
        assert isinstance(reader.seen, facts.Seen)
        delays = reader.seen.delays_s
        assert min(delays.values()) >= 0, "all was seen"
        if peers[0].asked_at["watch"] - peers[0].asked_at["prime"] < _REMEMBERED_S / 2:
            # A client that looked too early believes for long that nothing is there: that is
            # what makes the other figures worth something.
            assert delays[f"{writer}/sought"] > delays[f"{writer}/announced"]
            assert delays[f"{writer}/sought"] > 1
        assert isinstance(reader.churned, facts.Churned)
        assert reader.churned.reads[writer] > 0
    shown = share.server.run("ls", "-A", share.folder)
    assert (shown.code, shown.out) == (0, ""), "nothing is left behind"


def test_a_clean_share_passes_from_each_machine(share: Share) -> None:
    assert verify(share.one, share.point) == (0, set())
    code, found = verify(share.server, share.folder)
    assert (code, found) == (0, set()), "also where it is exported"


def test_a_mount_that_costs_results_is_named(share: Share) -> None:
    share.one.run("mkdir", "-p", "/mnt/spoilt")
    options = "vers=4.2,soft,actimeo=120"
    done = share.one.run(
        "mount", "-t", "nfs", "-o", options, f"server:{share.folder}", "/mnt/spoilt"
    )
    assert done.code == 0, done
    code, found = verify(share.one, "/mnt/spoilt")
    assert code == 1
    assert named(found, "mount options", "wrong", "'soft'")
    assert named(found, "mount options", "note", "up to 120 s ago, and readers of weights wait")
    assert share.one.run("umount", "/mnt/spoilt").code == 0


def test_a_clock_that_is_wrong_is_named(share: Share) -> None:
    assert share.two.run("date", "-s", "+2 hours").code == 0
    code, found = verify(share.two, share.point)
    assert share.two.run("date", "-s", "-2 hours").code == 0
    assert code == 1
    assert named(found, "clock and share", "wrong", "behind")


def test_exports_that_are_careless_are_named(share: Share) -> None:
    with exported(share.server, share.folder, "rw,async,no_root_squash"):
        code, found = verify(share.server, share.folder)
        assert code == 1
        assert named(found, "export", "wrong", "async for one")
        assert named(found, "export", "note", "no_root_squash for one")
        code, found = verify(share.one, share.point, root=True)
        assert named(found, "writing", "note", "root of this machine is root of the share")


def test_a_share_that_cannot_be_written_is_named(share: Share) -> None:
    code, found = verify(share.one, share.point, root=True)
    assert code == 1
    assert named(found, "writing", "wrong", "may not do that (begin: EACCES; uid 0, folder of 1234")
    with exported(share.server, share.folder, "ro,sync,root_squash"):
        code, found = verify(share.one, share.point)
        assert code == 1
        assert named(found, "writing", "wrong", "read-only here (begin: EROFS)")
    full = "fallocate -l $(df -B1 --output=avail / | tail -1) /srv/full"
    assert share.server.run("sh", "-c", full).code == 0
    code, found = verify(share.one, share.point)
    assert share.server.run("rm", "/srv/full").code == 0
    assert code == 1
    assert named(found, "writing", "wrong", "full")
    assert named(found, "room", "wrong", " B of ")
    assert verify(share.one, share.point) == (0, set()), "as before"
    assert share.server.run("ls", "-A", share.folder).out == ""


#: What doctor and the command do, with less patience.
_IMPATIENT = """
import json, sys
from nfs_setup.verify import LocalPeer, Place, Plan, judged, survey
peer = LocalPeer("here")
found = survey([Place(peer, sys.argv[1])], Plan(limit_s=3, quick=True))
peer.close()
print(json.dumps([(one.check, one.level.value, one.seen) for one in judged(found)]))
"""


def test_a_server_that_is_away_is_named_and_hangs_nobody(share: Share) -> None:
    share.network.cut(share.one)
    program = share.one.python_argv(_IMPATIENT, share.point)
    asking = share.one.start(*share.one.user_argv(*program))
    done = asking.wait(280)  # while nothing comes from the server
    share.network.heal(share.one)
    assert done.code == 0, done
    found = {tuple(one) for one in json.loads(done.out)}
    assert named(found, "share", "wrong", "no answer came in time (look: no answer in 3 s)"), found
