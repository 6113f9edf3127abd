"""One way to replace a small file: all at once, with its permissions, no draft left behind."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

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


def test_what_a_killed_one_left_is_no_obstacle(tmp_path: Path) -> None:
    Draft(tmp_path / "it", b"half")  # nobody ends it
    replace(tmp_path / "it", b"whole")
    assert (tmp_path / "it").read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["it"]
