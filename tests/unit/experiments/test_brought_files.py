"""Data of notebooks in an experiment's folder: whole, for its owner, and equal data once."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from dispatcher.experiments import brought_files
from dispatcher.experiments.brought_files import write_files

NAME = "notebook/data/abc.npy"


def _made(base: Path, name: str, content: bytes = b"data", file: str = NAME) -> Path:
    folder = base / name
    folder.mkdir(parents=True)
    write_files({"notebook/code.py": "x = 1\n", file: content}, folder)
    return folder / file


def test_data_is_private_and_code_is_text(tmp_path: Path) -> None:
    path = _made(tmp_path, "one")
    assert path.read_bytes() == b"data"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (path.parents[1] / "code.py").read_text() == "x = 1\n"
    assert sorted(each.name for each in path.parent.iterdir()) == ["abc.npy"]


def test_equal_data_of_two_experiments_is_one_file(tmp_path: Path) -> None:
    """Mutations: each has a copy; other content of the same name is shared."""
    one, two = _made(tmp_path, "one"), _made(tmp_path, "two")
    assert one.stat().st_ino == two.stat().st_ino
    other = _made(tmp_path, "other", b"DATA")
    assert other.read_bytes() == b"DATA"
    assert one.read_bytes() == b"data"
    one.unlink()
    assert two.read_bytes() == b"data"


@pytest.mark.parametrize("wrong", ["link", "mode", "folder"])
def test_what_may_be_changed_by_others_is_not_shared(wrong: str, tmp_path: Path) -> None:
    one = _made(tmp_path, "one")
    if wrong == "mode":
        one.chmod(0o644)
    else:
        one.rename(tmp_path / "moved")
        one.symlink_to(tmp_path / "moved") if wrong == "link" else one.mkdir()
    two = _made(tmp_path, "two")
    assert two.stat(follow_symlinks=False).st_nlink == 1
    assert two.read_bytes() == b"data"


def test_without_links_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = _made(tmp_path, "one")

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    two = _made(tmp_path, "two")
    assert two.read_bytes() == b"data"
    assert two.stat().st_ino != one.stat().st_ino


def test_a_full_disk_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: data is written in its place."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        _made(tmp_path, "one")
    assert list((tmp_path / "one" / "notebook" / "data").iterdir()) == []


def test_few_neighbours_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brought_files, "MOST_NEIGHBOURS", 0)
    one, two = _made(tmp_path, "one"), _made(tmp_path, "two")
    assert one.stat().st_ino != two.stat().st_ino
