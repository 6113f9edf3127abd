"""A share is told from a folder of the same name, and what is wrong is said in a sentence."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from trial_runtime.errors import PathOutsideRoot
from trial_runtime.weights.storage.paths import resolve_in_root
from trial_runtime.weights.storage.share import lay_token, trouble_with

as_root = os.geteuid() == 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    return folder


def test_a_root_has_one_token_for_good(root: Path) -> None:
    token = lay_token(str(root))
    assert lay_token(str(root)) == token
    assert len(token) == 32
    assert os.listdir(root / ".bequeath") == ["share"]
    other = root.with_name("other")
    assert lay_token(str(other)) != token  # and is made where it is missing


def test_heads_that_lay_it_down_at_once_agree(root: Path) -> None:
    tokens: list[str] = []
    together = threading.Barrier(8)

    def lay() -> None:
        together.wait(120)
        tokens.append(lay_token(str(root)))

    heads = [threading.Thread(target=lay) for _ in range(8)]
    for head in heads:
        head.start()
    for head in heads:
        head.join(120)
    assert len(tokens) == 8
    assert len(set(tokens)) == 1


def test_a_file_system_without_hard_links(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    token = lay_token(str(root))
    assert token
    assert lay_token(str(root)) == token


def test_the_right_share_is_no_trouble_and_left_as_it_was(root: Path) -> None:
    token = lay_token(str(root))
    assert trouble_with(str(root), token, "/srv/weights") == ""
    assert os.listdir(root) == [".bequeath"]


def test_a_root_that_is_not_there(root: Path) -> None:
    assert "is not there: is the share mounted" in trouble_with(f"{root}/no", "t")


def test_a_root_that_nobody_lets_us_into(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    assert f"lets user {os.geteuid()}" in trouble_with(str(root), "t")


def test_a_root_that_is_a_file(root: Path) -> None:
    (root / "file").write_text("x")
    assert "is no folder" in trouble_with(f"{root}/file", "t")


def test_a_place_where_nothing_is_mounted(root: Path) -> None:
    assert "is empty, as a place is where nothing is mounted" in trouble_with(str(root), "t")


def test_another_folder(root: Path) -> None:
    (root / "something").write_text("x")
    found = trouble_with(str(root), "t", "/srv/weights")
    assert "is not the same share as the head's (/srv/weights)" in found


def test_another_share(root: Path) -> None:
    lay_token(str(root))
    assert "is another share than the head's" in trouble_with(str(root), "0" * 32)


@pytest.mark.parametrize(
    "number, words",
    [
        (errno.EROFS, "is read-only on this host"),
        (errno.EACCES, f"takes no files of user {os.geteuid()}"),
        (errno.EIO, "takes no files: "),
        (errno.ENOSPC, ""),
        (errno.EDQUOT, ""),
    ],
)
def test_what_keeps_it_from_being_written(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    token = lay_token(str(root))
    real = os.open

    def refuse(path: str, flags: int, *more: int, **options: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(number, os.strerror(number))
        return real(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", refuse)
    found = trouble_with(str(root), token)
    assert words in found
    assert bool(found) == bool(words)


@pytest.mark.skipif(as_root, reason="root may write everywhere")
def test_a_folder_without_permission(root: Path) -> None:
    token = lay_token(str(root))
    root.chmod(0o555)
    try:
        assert "takes no files of user" in trouble_with(str(root), token)
    finally:
        root.chmod(0o755)


def test_no_link_or_pipe_of_somebody_else_is_followed(root: Path) -> None:
    token = lay_token(str(root))
    path = root / ".bequeath" / "share"
    path.unlink()
    os.mkfifo(path)
    assert trouble_with(str(root), token) != ""
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert "cannot be read" in trouble_with(str(root), token)


@pytest.mark.parametrize("path", [".bequeath", ".bequeath/share", "a/../.bequeath/x"])
def test_nobody_saves_there(root: Path, path: str) -> None:
    with pytest.raises(PathOutsideRoot, match="whether they have the same share"):
        resolve_in_root(str(root), path)
    assert resolve_in_root(str(root), "a/.bequeath") == "a/.bequeath"


def test_a_link_that_somebody_put_there_first_is_not_followed(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / ".bequeath").symlink_to(elsewhere)
    with pytest.raises(OSError, match="a symbolic link is in the way") as caught:
        lay_token(str(root))
    assert caught.value.errno == errno.ELOOP
    assert list(elsewhere.iterdir()) == []
    assert "a symbolic link is in the way" in trouble_with(str(root), "0" * 32)


def test_the_root_itself_may_be_a_link_of_the_users(root: Path, tmp_path: Path) -> None:
    (tmp_path / "called").symlink_to(root)
    token = lay_token(str(tmp_path / "called"))
    assert lay_token(str(root)) == token
    assert trouble_with(str(tmp_path / "called"), token) == ""
