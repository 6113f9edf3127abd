"""This machine: commands end in time and say so much at most, files are whole or not there."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import MOST_BYTES
from nfs_setup.local_host import LocalHost


def test_a_command_and_how_it_ended() -> None:
    host = LocalHost()
    ran = host.run([sys.executable, "-c", "import sys; print('out'); sys.exit('wrong')"])
    assert (ran.code, ran.out, ran.err, ran.message) == (1, "out\n", "wrong\n", "wrong")
    assert host.run([sys.executable, "-c", ""]).message == "it ended with 0 and printed nothing"
    assert host.run(["/no/such/program"]).code == 127
    assert host.run([str(Path(__file__))]).code == 126
    ran = host.run([sys.executable, "-c", "print(input())"], stdin=b"handed over\n")
    assert ran.out == "handed over\n"


def test_a_command_that_hangs_is_ended_with_its_children() -> None:
    ran = LocalHost().run(["sh", "-c", "sleep 1000 & echo $!; wait"], limit_s=2)
    assert ran.code == 124
    assert ran.message.endswith("took longer than 2 s")
    try:
        child = os.pidfd_open(int(ran.out))
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([child], [], [], 30)
    finally:
        os.close(child)
    assert ended, "it goes on behind the user's back"


def test_what_a_command_says_is_bounded() -> None:
    ran = LocalHost().run([sys.executable, "-c", "print('x' * 10_000_000); print('end')"])
    assert ran.out.endswith("x\nend\n")
    assert len(ran.out) <= 1 << 20


def test_no_text_is_given_to_a_shell(tmp_path: Path) -> None:
    word = f"$(touch {tmp_path}/made); `id`"
    assert LocalHost().run(["echo", word]).out == f"{word}\n"
    assert not (tmp_path / "made").exists()


def test_files(tmp_path: Path) -> None:
    host, own = LocalHost(str(tmp_path)), (os.geteuid(), os.getegid())
    assert host.read("/a") is None
    assert host.stat("/a/b") is None
    host.write("/a", b"one", 0o640, *own)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    found = host.stat("/a")
    assert found is not None
    assert (found.kind, found.mode) == ("file", 0o640)
    assert host.names("/") == ["a"]
    host.make_folder("/f", 0o2750)
    assert not host.remove_folder("/")
    assert host.remove_folder("/f")
    assert host.remove_folder("/f")
    host.make_link("/l", "elsewhere")
    assert (host.link("/l"), host.link("/a")) == ("elsewhere", None)
    link = host.stat("/l")
    assert link is not None
    assert link.kind == "link"
    host.remove("/a")
    host.remove("/a")
    assert host.names("/") == ["l"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, own = LocalHost(str(tmp_path)), (os.geteuid(), os.getegid())
    host.write("/a", b"old", 0o600, *own)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nfs_setup.local_host.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        host.write("/a", b"new", 0o600, *own)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert host.names("/") == ["a"]


def test_a_file_far_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(MachineRefuses, match="more than 4 MiB"):
        LocalHost(str(tmp_path)).read("/large")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "victim").write_text("dear")
    (tmp_path / "run/bequeath-nfs.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError), LocalHost(str(tmp_path)).exclusive():
        pass
    assert (tmp_path / "victim").read_text() == "dear"
