"""A backup holds what lies in the weights root, and nothing that a link there leads to."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dispatcher.maintenance import backup
from dispatcher.maintenance.tree_copy import copy_tree
from trial_runtime.errors import PathThroughLink


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "id_ed25519").write_text("PRIVATE KEY")
    (tmp_path / "share" / "t" / "0" / "deep").mkdir(parents=True)
    (tmp_path / "share" / "t" / "0" / "model.bin").write_text("weights")
    (tmp_path / "share" / "t" / "0" / "deep" / "more.bin").write_text("more")
    (tmp_path / "share" / "t" / "0" / "deep" / "same").symlink_to("more.bin")
    (tmp_path / "share" / "t" / "0" / "keys").symlink_to(tmp_path / "home")
    os.mkfifo(tmp_path / "share" / "t" / "0" / "fifo")
    return tmp_path / "share"


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_text()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("links", [True, False])
def test_a_folder_is_copied_as_it_is(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def none(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    if not links:
        monkeypatch.setattr(os, "link", none)
    assert copy_tree(root / "t" / "0", tmp_path / "copy" / "0") is links
    assert content(tmp_path / "copy" / "0") == {
        "model.bin": "weights", "deep/more.bin": "more", "deep/same": "more.bin",
        "keys": str(tmp_path / "home"),
    }  # fmt: skip
    assert copy_tree(root / "t" / "0" / "model.bin", tmp_path / "copy" / "one") is links
    assert (tmp_path / "copy" / "one").read_text() == "weights"


@pytest.mark.parametrize("name", ["t", "t/0", "t/0/model.bin"])
def test_a_link_in_the_place_of_weights_is_not_followed(
    root: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "home" / "0").mkdir()
    (tmp_path / "home" / "0" / "model.bin").write_text("PRIVATE KEY")
    (root / name).rename(tmp_path / "aside")
    (root / name).symlink_to(tmp_path / "home")
    with pytest.raises(PathThroughLink):
        copy_tree(root / "t" / "0" / "model.bin", tmp_path / "copy" / "0")
    assert content(tmp_path / "copy") == {}


@pytest.mark.parametrize("name", ["stores", "stores/s", "stores/s/v1"])
def test_nor_is_one_among_shared_stores(root: Path, tmp_path: Path, name: str) -> None:
    (root / "stores" / "s" / "v1").mkdir(parents=True)
    (root / "stores" / "s" / "v1" / "model.bin").write_text("weights")
    linked, links = backup.copy_stores(root / "stores", tmp_path / "copy")
    assert (linked, links) == (True, [])
    assert content(tmp_path / "copy") == {"s/v1/model.bin": "weights"}
    (root / name).rename(tmp_path / "aside")
    (root / name).symlink_to(tmp_path / "home")
    _, links = backup.copy_stores(root / "stores", tmp_path / "again")
    assert links == [str(root / name)]
    assert not (tmp_path / "again").exists() or content(tmp_path / "again") == {}
