"""Probes on a folder of this machine: what they measure, and that they stay where they belong."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from nfs_setup.errors import RequestRefused
from nfs_setup.plain_values import made_of
from nfs_setup.verify import facts, place, views
from nfs_setup.verify.files import is_ours, new_name, put
from nfs_setup.verify.habits import HABITS
from nfs_setup.verify.place import kind_of
from nfs_setup.verify.probes import answer

_HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def name() -> str:
    return new_name()


@pytest.fixture
def begun(tmp_path: Path, name: str) -> Path:
    """A verification's folder with those of two machines."""
    for own in ("m0", "m1"):
        ask(do="begin", path=str(tmp_path), name=name, own=own, make=own == "m0", limit_s=0.0)
    return tmp_path / name


def ask(**request: Any) -> dict[str, Any]:
    said = answer({"verb": "probe", **request})
    assert "failed" not in said, said
    found: dict[str, Any] = said["facts"]
    return found


def test_a_folder_is_looked_at_and_nothing_is_changed(tmp_path: Path) -> None:
    found = ask(do="look", path=str(tmp_path))
    assert (found["found"], found["uid"], found["kind"] != "") == ("folder", os.geteuid(), True)
    assert found["total_bytes"] >= found["free_bytes"] > 0
    assert ask(do="look", path=str(tmp_path / "none"))["found"] == "nothing"
    (tmp_path / "file").touch()
    assert ask(do="look", path=str(tmp_path / "file"))["found"] == "other"
    assert os.listdir(tmp_path) == ["file"]


def test_what_was_begun_ends_without_a_trace(tmp_path: Path, name: str, begun: Path) -> None:
    assert sorted(os.listdir(begun)) == ["m0", "m1"]
    ask(do="end", path=str(tmp_path), name=name)
    assert os.listdir(tmp_path) == []
    again = answer({"do": "end", "path": str(tmp_path), "name": name})
    assert again["failed"]["code"] == "ENOENT"


def test_set_gid_and_owner_are_seen(tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o2770)
    found = ask(do="begin", path=str(tmp_path), name=name, own="m0", make=True, limit_s=0.0)
    assert found["parent_set_gid"]
    assert found["set_gid"]
    assert (found["uid"], found["gid"]) == (os.geteuid(), tmp_path.stat().st_gid)
    assert found["ahead_least_s"] - 1 < 0 < found["ahead_most_s"] + 1


def test_leftovers_of_the_dead_are_removed_after_an_hour(tmp_path: Path, name: str) -> None:
    old, young, others = new_name(), new_name(), ".bequeath-verify-mine"
    for folder in (old, young, others):
        (tmp_path / folder / "m0").mkdir(parents=True)
    for folder in (old, others):
        os.utime(tmp_path / folder, (0, 0))
    found = ask(do="begin", path=str(tmp_path), name=name, own="m0", make=True, limit_s=0.0)
    assert found["leftovers"] == 1
    assert set(os.listdir(tmp_path)) == {young, others, name}


def test_a_link_under_a_leftovers_name_is_not_followed(tmp_path: Path, name: str) -> None:
    treasure, share = tmp_path / "treasure", tmp_path / "share"
    (treasure / "kept").mkdir(parents=True)
    share.mkdir()
    (share / new_name()).symlink_to(treasure)
    os.utime(share / os.listdir(share)[0], (0, 0), follow_symlinks=False)
    ask(do="begin", path=str(share), name=name, own="m0", make=True, limit_s=0.0)
    assert (treasure / "kept").is_dir()


def test_a_folder_that_does_not_show_is_waited_for(tmp_path: Path, name: str) -> None:
    said = {"do": "begin", "path": str(tmp_path), "name": name, "own": "m1", "make": False}
    assert answer({**said, "limit_s": 0.0})["failed"]["code"] == "ENOENT"
    maker = threading.Thread(target=(tmp_path / name).mkdir)
    maker.start()
    ask(**said, limit_s=60.0)
    maker.join()


def test_habits_of_a_file_system_of_this_machine(begun: Path) -> None:
    found = ask(do="habits", folder=str(begun / "m0"))["found"]
    assert set(found) == set(HABITS)
    needed = {"fsync", "exclusive create", "replace an open file", "remove an open file"}
    assert {found[name] for name in needed} == {"yes"}


def test_a_habit_that_is_missing_is_told(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    found = ask(do="habits", folder=str(begun / "m0"))["found"]
    assert found["fsync"] == "EINVAL"
    assert found["upper and lower case"] == "EINVAL"


def test_pace_and_big_files(begun: Path) -> None:
    found = ask(do="pace", folder=str(begun / "m0"), rounds=3, limit_s=60.0)
    assert found["rounds"] == 3
    assert found["publish_worst_s"] >= found["publish_s"] >= found["fsync_s"] >= 0
    assert ask(do="pace", folder=str(begun / "m1"), rounds=9, limit_s=-1.0)["rounds"] == 1
    path = str(begun / "m0" / "big")
    wrote = ask(do="write big", path=path, nbytes=3 << 20, limit_s=60.0)
    read = ask(do="read big", path=path, limit_s=60.0)
    assert (wrote["nbytes"], wrote["digest"]) == (3 << 20, read["digest"])
    with open(path, "r+b") as file:
        file.write(b"x" * 64)
    assert ask(do="read big", path=path, limit_s=60.0)["digest"] != wrote["digest"]


def test_what_is_published_is_seen(begun: Path) -> None:
    writer = str(begun / "m0")
    ask(do="lay", folder=writer)
    ask(do="prime", folders=[writer], limit_s=60.0)
    published = ask(do="publish", folder=writer)
    wanted = {f"w/{case}": digest for case, digest in published["digests"].items()}
    seen = ask(do="watch", folders={"w": writer}, wanted=wanted, limit_s=60.0)
    assert set(seen["delays_s"]) == {f"w/{case}" for case in views.CASES}
    assert min(seen["delays_s"].values()) >= 0
    assert seen["owners"] == {"w": f"{published['uid']}:{published['gid']}"}
    assert (seen["torn"], seen["errors"]) == ({}, {})


def test_stale_torn_and_unreadable_views_are_told(begun: Path) -> None:
    writer = str(begun / "m0")
    ask(do="lay", folder=writer)
    put(f"{writer}/views/new/file", b"half")
    os.mkdir(f"{writer}/views/sought/file")
    wanted = {f"w/{case}": "d" for case in views.CASES}
    seen = ask(do="watch", folders={"w": writer}, wanted=wanted, limit_s=0.0)
    assert set(seen["delays_s"].values()) == {-1.0}
    assert seen["torn"] == {"w/new": 1}
    assert seen["errors"] == {"w/sought": "EISDIR"}


def test_files_that_are_replaced_are_read_whole(begun: Path) -> None:
    own, other = str(begun / "m0"), str(begun / "m1")
    for folder in (own, other):
        ask(do="lay", folder=folder)
    found = ask(do="churn", own=own, others={"two": other}, seconds=0.05)
    assert found["wrote"] >= 1
    assert found["reads"]["two"] >= 1
    assert (found["torn"], found["missing"]) == ({"two": 0}, {"two": 0})


def test_torn_and_missing_files_are_counted(begun: Path) -> None:
    own, other = str(begun / "m0"), str(begun / "m1")
    ask(do="lay", folder=other)
    with open(f"{other}/churn", "r+b") as file:
        file.truncate(1000)
    others = {"torn": other, "none": str(begun / "m2")}
    found = ask(do="churn", own=own, others=others, seconds=0.05)
    assert found["torn"]["torn"] >= 1
    assert found["missing"]["none"] >= 1
    assert set(found["reads"].values()) == {0}


def test_a_lock_that_is_held_elsewhere_is_refused(begun: Path) -> None:
    path, mark = str(begun / "m0" / "lock"), str(begun / "m0" / "refused.m1")
    free = ask(do="attempt", path=path, mark=f"{mark}.free", seconds=0.05)
    assert (free["had"], free["refused"]) == (True, False)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:  # a lock is its process's own
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert ask(do="attempt", path=path, mark=mark, seconds=60.0)["refused"]
        held = ask(do="hold", path=path, marks=[mark], seconds=0.05)
        assert (held["had"], held["refused"]) == (False, True)
    assert ask(do="hold", path=path, marks=[mark], seconds=60.0)["had"], "all marks are there"
    assert ask(do="hold", path=path, marks=[f"{mark}.none"], seconds=0.05)["had"]


def test_locks_that_nobody_serves_are_told(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    mark = str(begun / "m0" / "refused")
    found = ask(do="attempt", path=str(begun / "m0" / "lock"), mark=mark, seconds=60.0)
    assert (found["had"], found["refused"], found["error"]) == (False, False, "ENOLCK")


@pytest.mark.parametrize(
    "request_",
    [
        [],
        {},
        {"do": "remove"},
        {"do": ["look"]},
        {"do": "look"},
        {"do": "look", "path": "/", "more": 1},
        {"do": "end", "path": "/srv", "name": "weights"},
        {"do": "begin", "path": "/srv", "name": "..", "own": "m0", "make": True, "limit_s": 1.0},
        {"do": "lay", "folder": "/srv/weights"},
        {"do": "write big", "path": "/etc/passwd", "nbytes": 1, "limit_s": 1.0},
        {"do": "churn", "own": f"/x/{new_name()}/m0", "others": {"a": "/srv"}, "seconds": 1.0},
        {"do": "prime", "folders": ["/srv/a"], "limit_s": 1.0},
        {"do": "hold", "path": f"/x/{new_name()}/../y", "marks": [], "seconds": 1.0},
    ],
)
def test_probes_stay_in_folders_of_their_own(request_: Any) -> None:
    with pytest.raises(RequestRefused):
        answer(request_)


def test_names_of_our_folders() -> None:
    assert is_ours(new_name())
    assert not any(map(is_ours, ("weights", ".bequeath-verify-", ".bequeath-verify-xyz", "..")))


def test_file_systems_by_their_kernels_names() -> None:
    for name in ("nfs", "nfs4", "lustre", "ceph", "fuse.ceph", "gpfs", "cifs", "fuse.sshfs"):
        assert kind_of(name).network, name
    assert not any(kind_of(name).network for name in ("ext4", "xfs", "tmpfs", "overlay", ""))


def test_exports_are_read_where_the_folder_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etab = tmp_path / "etab"
    etab.write_text("/srv/w\tone(rw,sync,no_subtree_check)\n/srv/other\t*(ro)\n/srv\ta(rw,async)\n")
    monkeypatch.setattr(place, "EXPORTED", str(etab))
    found = place.exports_of(place.LocalHost(), "/srv/w")
    assert found == ("one(rw,sync,no_subtree_check)", "a(rw,async)")


@pytest.mark.parametrize(
    "form, document",
    [
        (facts.Moment, {"now_s": "1"}),
        (facts.Moment, {"now_s": True}),
        (facts.Moment, {}),
        (facts.Moment, {"now_s": 1.0, "more": 1}),
        (facts.Moment, None),
        (facts.Habits, {"found": {"a": 1}}),
        (facts.Habits, {"found": ["a"]}),
        (facts.Held, {"had": 1, "refused": False, "error": ""}),
    ],
)
def test_answers_are_read_strictly(form: type[Any], document: Any) -> None:
    with pytest.raises(RequestRefused):
        made_of(form, document, "answer")


def test_facts_travel(tmp_path: Path) -> None:
    found = place.look(str(tmp_path))
    assert made_of(facts.Surroundings, json.loads(json.dumps(asdict(found))), "answer") == found
