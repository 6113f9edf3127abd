"""Artefacts stay in their folder and within their bounds, also when somebody works against it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trial_runtime import artefacts
from trial_runtime.api_errors import ArtefactRefused
from trial_runtime.errors import PathThroughLink


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "artefacts")


def test_bytes_and_files_are_kept_and_replaced(folder: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(3_000_000))
    path = artefacts.keep(folder, "a/b.bin", source)
    assert Path(path).read_bytes() == source.read_bytes()
    assert artefacts.keep(folder, "a/b.bin", b"new") == path
    assert Path(path).read_bytes() == b"new"
    assert [p.name for p in Path(folder).rglob("*") if p.is_file()] == ["b.bin"]


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", ".", "a/../../x", "a\0b"])
def test_names_that_lead_out(folder: str, name: str) -> None:
    with pytest.raises(ArtefactRefused, match="leads out"):
        artefacts.keep(folder, name, b"")


def test_a_link_on_the_way_is_not_followed(folder: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    os.mkdir(folder)
    os.symlink(outside, os.path.join(folder, "plots"))
    with pytest.raises(PathThroughLink):
        artefacts.keep(folder, "plots/a.txt", b"x")
    assert list(outside.iterdir()) == []


def test_a_link_in_its_own_place_is_replaced_and_not_written_through(
    folder: str, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    os.mkdir(folder)
    os.symlink(precious, os.path.join(folder, "a"))
    path = artefacts.keep(folder, "a", b"x")
    assert precious.read_text() == "kept"
    assert not os.path.islink(path)


def test_bounds(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "MAX_BYTES", 1000)
    monkeypatch.setattr(artefacts, "MAX_SUM_BYTES", 1500)
    monkeypatch.setattr(artefacts, "MAX_FILES", 3)
    with pytest.raises(ArtefactRefused, match="1,001 bytes"):
        artefacts.keep(folder, "large", bytes(1001))
    artefacts.keep(folder, "one", bytes(1000))
    with pytest.raises(ArtefactRefused, match="1,600 bytes"):
        artefacts.keep(folder, "two", bytes(600))
    artefacts.keep(folder, "one", bytes(900))  # in its own place
    artefacts.keep(folder, "two", b"")
    artefacts.keep(folder, "three", b"")
    with pytest.raises(ArtefactRefused, match="4 files"):
        artefacts.keep(folder, "four", b"")


def test_a_file_that_grows_while_it_is_copied(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(2000))
    monkeypatch.setattr(artefacts, "MAX_BYTES", 1000)
    monkeypatch.setattr(os.path, "getsize", lambda _: 10)  # as it was when it was asked
    with pytest.raises(ArtefactRefused, match="2,000 bytes"):
        artefacts.keep(folder, "a", source)
    assert [p for p in Path(folder).rglob("*") if p.is_file()] == []
