"""One place has one spelling, and none outside the root is reached."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trial_runtime.errors import PathOutsideRoot, PathThroughLink
from trial_runtime.weights.storage.paths import nested, resolve_in_root, spelled_in_root
from trial_runtime.weights.storage.roots import Roots, current, locate_to_read


@pytest.mark.parametrize(
    "candidate",
    ["gen1/3", "gen1//3/", "./gen1/3", "gen1/x/../3", "{root}/gen1/3", "{root}/../weights/gen1/3"],
)
def test_spellings_of_one_place(root: Path, candidate: str) -> None:
    assert resolve_in_root(str(root), candidate.format(root=root)) == "gen1/3"


@pytest.mark.parametrize(
    "candidate", ["..", "../x", "a/../../x", "/etc/passwd", "", ".", "a/..", "a\0b", "{root}x"]
)
def test_places_outside(root: Path, candidate: str) -> None:
    with pytest.raises(PathOutsideRoot):
        resolve_in_root(str(root), candidate.format(root=root))


def test_a_spelling_is_judged_without_asking_any_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stat", "lstat", "readlink", "open"):
        monkeypatch.setattr(os, name, lambda *_, **__: pytest.fail("asked the disk"))
    for candidate in ("gen1/3", "gen1/x/../3", "/w/gen1//3", "/w/../w/gen1/3"):
        assert spelled_in_root("/w", candidate) == "gen1/3"
    assert spelled_in_root("/w", "/pre/net", read_roots=["/pre"]) == "/pre/net"
    assert spelled_in_root("/w", "/pre", read_roots=["/pre/"]) == "/pre"
    outside = ("..", "../x", "/wx", "", ".", "a/..", "a\0b", ".checkpoints/x", "/pre/../etc")
    for candidate in outside:
        with pytest.raises(PathOutsideRoot):
            spelled_in_root("/w", candidate, read_roots=["/pre"])
    with pytest.raises(PathOutsideRoot):
        spelled_in_root("/w", "/pre/net")


def test_a_root_that_is_reached_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    assert resolve_in_root(str(tmp_path / "alias"), str(root / "1")) == "1"
    assert resolve_in_root(str(root), str(tmp_path / "alias" / "1")) == "1"


def test_links_inside_the_root_give_the_place_they_lead_to(root: Path) -> None:
    (root / "1").mkdir()
    (root / "best").symlink_to("1")
    assert resolve_in_root(str(root), "best") == "1"
    assert resolve_in_root(str(root), "best/inner") == "1/inner"


def test_links_that_leave_the_root(root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    for candidate in ("out", "out/x", str(root / "out" / "x"), "loop"):
        with pytest.raises(PathThroughLink):
            resolve_in_root(str(root), candidate)


def test_read_roots_are_for_reading(root: Path, tmp_path: Path) -> None:
    pretrained = tmp_path / "pretrained"
    pretrained.mkdir()
    (root / "zoo").symlink_to(pretrained)
    candidate = str(pretrained / "net.safetensors")
    with pytest.raises(PathOutsideRoot):
        resolve_in_root(str(root), candidate)
    assert resolve_in_root(str(root), candidate, read_roots=[str(pretrained)]) == candidate
    through_link = resolve_in_root(str(root), "zoo/net.safetensors", read_roots=[str(pretrained)])
    assert through_link == candidate
    assert locate_to_read(candidate, str(root), (str(pretrained),)).root == str(pretrained)
    assert locate_to_read(candidate, str(root), (candidate,)).root == str(pretrained)


def test_nested_claims() -> None:
    assert nested("a/b", "a/b")
    assert nested("a", "a/b")
    assert nested("a/b/c", "a/b")
    assert not nested("a/b", "a/bc")


@given(parts=st.lists(st.sampled_from(["a", "b", "..", ".", "", "c d"]), min_size=1, max_size=8))
def test_what_is_resolved_stays_inside_and_resolves_to_itself(
    parts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = str(tmp_path_factory.getbasetemp())
    try:
        found = resolve_in_root(root, "/".join(parts).lstrip("/"))
    except PathOutsideRoot:
        return
    assert ".." not in found.split("/")
    assert resolve_in_root(root, found) == found


def test_the_environment_tells_the_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEQUEATH_WEIGHTS_ROOT", "/w")
    monkeypatch.setenv("BEQUEATH_WEIGHTS_READ_ROOTS", "/p:/q")
    assert current() == Roots("/w", ("/p", "/q"))
