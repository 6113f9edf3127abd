"""One way to replace a small file: all at once, with its permissions, no draft left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trial_runtime.durable_file import Draft, replace


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_with_its_permissions(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"old")
    path.chmod(0o666)
    replace(path, b"new", durable=durable)
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o600)
    replace(path, b"newer", mode=0o640, durable=durable)
    assert (path.read_bytes(), mode_of(path)) == (b"newer", 0o640)
    assert os.listdir(tmp_path) == ["it"]


def test_the_umask_decides_where_no_permissions_are_given(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace(tmp_path / "it", b"x", mode=None, durable=False)
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "it") == 0o640


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("two hundred pages")
    (tmp_path / "it").symlink_to("thesis")
    replace(tmp_path / "it", b"x")
    assert not (tmp_path / "it").is_symlink()
    assert (tmp_path / "thesis").read_text() == "two hundred pages"


def test_what_is_durable_is_on_disk_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def note(descriptor: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        content = (tmp_path / "it").read_text() if (tmp_path / "it").exists() else ""
        steps.append(f"{'folder' if place == tmp_path else 'file'} {content}".strip())

    monkeypatch.setattr(os, "fsync", note)
    replace(tmp_path / "it", b"new")
    assert steps == ["file", "folder new"]
    replace(tmp_path / "it", b"newer", durable=False)
    assert len(steps) == 2


def test_a_disk_that_is_full_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    (tmp_path / "it").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        replace(tmp_path / "it", b"new")
    assert (tmp_path / "it").read_text() == "old"
    assert os.listdir(tmp_path) == ["it"]


def test_a_draft_that_takes_no_place_is_gone(tmp_path: Path) -> None:
    with Draft(tmp_path / "it", b"x"):
        assert len(os.listdir(tmp_path)) == 1
    assert os.listdir(tmp_path) == []


def test_what_a_killed_writer_left_goes_with_the_next_one(tmp_path: Path) -> None:
    """Secrets of an experiment would lie there for good. Mutation: nobody removes leftovers."""
    dies = (
        "import os, sys; from pathlib import Path; from trial_runtime.durable_file import Draft; "
    )
    dies += "draft = Draft(Path(sys.argv[1]), b'half'); os._exit(9)"
    child = subprocess.run([sys.executable, "-c", dies, str(tmp_path / "it")], check=False)
    assert child.returncode == 9
    assert len(os.listdir(tmp_path)) == 1
    replace(tmp_path / "it", b"whole")
    assert (tmp_path / "it").read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["it"]


def test_a_draft_in_use_is_no_leftover(tmp_path: Path) -> None:
    """Mutation: a writer removes all drafts of its file, and the other one finds its own gone."""
    with Draft(tmp_path / "it", b"first") as first:
        replace(tmp_path / "it", b"second")
        first.place()
    assert (tmp_path / "it").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["it"]


def test_two_drafts_of_a_thread_are_two(tmp_path: Path) -> None:
    with Draft(tmp_path / "it", b"first") as first, Draft(tmp_path / "it", b"second") as second:
        second.place()
        first.place()
    assert (tmp_path / "it").read_bytes() == b"first"


@pytest.mark.parametrize("name", [".it.old", ".it.0123456789abcdef0", ".its.0123456789abcdef"])
def test_other_files_stay(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    replace(tmp_path / "it", b"x")
    assert sorted(os.listdir(tmp_path)) == sorted(["it", name])


def test_a_link_and_a_pipe_in_the_place_of_a_leftover_are_left_alone(tmp_path: Path) -> None:
    """Somebody else may write to the folder. Mutation: what has such a name is opened as it is."""
    (tmp_path / "thesis").write_text("two hundred pages")
    (tmp_path / f".it.{'0' * 16}").symlink_to("thesis")
    os.mkfifo(tmp_path / f".it.{'1' * 16}")
    replace(tmp_path / "it", b"x")
    assert len(os.listdir(tmp_path)) == 4
    assert (tmp_path / "thesis").read_text() == "two hundred pages"


def test_a_file_that_a_sweep_took_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the writer goes on with a file that has no name, and ends without a file."""
    lock, taken = fcntl.flock, []

    def sweep_first(descriptor: int, operation: int) -> None:
        if not taken:
            taken.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            os.unlink(taken[0])
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", sweep_first)
    replace(tmp_path / "it", b"x")
    assert taken
    assert (tmp_path / "it").read_bytes() == b"x"
    assert os.listdir(tmp_path) == ["it"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_server_that_says_only_at_a_close_that_it_is_full_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), descriptor)

    monkeypatch.setattr(os, "fsync" if durable else "close", full)
    with pytest.raises(OSError, match="quota"):
        replace(path, b"new", durable=durable)
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["it"]


@pytest.mark.parametrize("odd", ["no name", "locked"])
def test_a_file_system_that_misjudges_every_file_is_written_nevertheless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    """Mutation: it is tried for ever."""
    asked = 0

    def judge(descriptor: int, how: int = 0) -> SimpleNamespace:
        nonlocal asked
        asked += 1
        assert asked < 1000
        if odd == "locked":
            raise BlockingIOError
        return SimpleNamespace(st_nlink=0)

    if odd == "locked":
        monkeypatch.setattr(fcntl, "flock", judge)
    else:
        monkeypatch.setattr(os, "fstat", judge)
    replace(tmp_path / "it", b"new")
    monkeypatch.undo()
    assert (tmp_path / "it").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["it"]
