"""What a trial's next attempt goes on from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from trial_runtime.api_errors import AttemptSuperseded
from trial_runtime.checkpoints import Checkpoints, folder_of, make_folder
from trial_runtime.errors import DiskFull, PathOutsideRoot, PathThroughLink
from trial_runtime.weights.storage import publishing
from trial_runtime.weights.storage.paths import resolve_in_root


def _state(step: int) -> dict[str, object]:
    return {"weights": np.full(3, float(step)), "step": step}


def _step(checkpoints: Checkpoints) -> int | None:
    state = checkpoints.load()
    if state is None:
        return None
    assert state["weights"][0] == state["step"]
    return int(state["step"])


def _saved(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(".saved/*/*"))


def test_there_is_none_at_first(tmp_path: Path) -> None:
    assert Checkpoints(str(tmp_path), 1).load() is None


def test_the_next_attempt_finds_the_newest(tmp_path: Path) -> None:
    first = Checkpoints(str(tmp_path), 1)
    for step in range(12):
        first.save(_state(step))
    assert len(_saved(tmp_path)) == 2, "the newest two are kept"
    assert _step(Checkpoints(str(tmp_path), 2)) == 11
    assert _step(Checkpoints(str(tmp_path), 3)) == 11


def test_into_a_model(tmp_path: Path) -> None:
    Checkpoints(str(tmp_path), 1).save(_state(4))
    target = {"weights": np.zeros(3)}
    report = Checkpoints(str(tmp_path), 2).load(into=target)
    assert list(report.loaded) == ["weights"]
    assert target["weights"].tolist() == [4.0, 4.0, 4.0]


def test_one_that_was_spoilt_is_passed_over(tmp_path: Path) -> None:
    first = Checkpoints(str(tmp_path), 1)
    first.save(_state(1))
    newest = Path(first.save(_state(2)))
    (data,) = newest.glob("*.safetensors")
    content = bytearray(data.read_bytes())
    content[-1] ^= 1
    data.write_bytes(content)
    assert _step(Checkpoints(str(tmp_path), 2)) == 1


def test_a_manifest_that_says_another_step_is_passed_over(tmp_path: Path) -> None:
    first = Checkpoints(str(tmp_path), 1)
    first.save(_state(1))
    manifest = Path(first.save(_state(2))) / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"step":2', b'"step":3'))
    assert _step(Checkpoints(str(tmp_path), 2)) == 1


def test_a_save_that_died_half_way_is_none(tmp_path: Path) -> None:
    first = Checkpoints(str(tmp_path), 1)
    complete = Path(first.save(_state(1)))
    os.rename(complete, complete.with_name(".draft-2"))  # not yet renamed
    assert Checkpoints(str(tmp_path), 1).load() is None
    assert Path(first.save(_state(2))).is_dir()


def test_a_save_that_failed_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Checkpoints(str(tmp_path), 1)
    first.save(_state(1))
    with monkeypatch.context() as full:

        def refuse(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        full.setattr(publishing.os, "fsync", refuse)
        with pytest.raises(DiskFull):
            first.save(_state(2))
    assert [path.name[:6] for path in _saved(tmp_path)] == ["000001"]
    assert _step(Checkpoints(str(tmp_path), 2)) == 1


def test_an_attempt_that_was_given_up_overwrites_nothing(tmp_path: Path) -> None:
    zombie, successor = Checkpoints(str(tmp_path), 1), Checkpoints(str(tmp_path), 2)
    zombie.save(_state(5))
    assert _step(successor) == 5
    with pytest.raises(AttemptSuperseded, match="attempt 2 of this trial has begun"):
        zombie.save(_state(6))
    successor.save(_state(7))
    assert _step(Checkpoints(str(tmp_path), 3)) == 7


def test_what_it_wrote_without_knowing_counts_less_than_its_successors(tmp_path: Path) -> None:
    """On shared storage that shows it its successor late."""
    zombie = Checkpoints(str(tmp_path / "late"), 1)
    for step in range(90, 99):
        zombie.save(_state(step))
    successor = Checkpoints(str(tmp_path), 2)
    successor.save(_state(7))
    os.rename(tmp_path / "late/.saved/1", tmp_path / ".saved/1")
    assert _step(Checkpoints(str(tmp_path), 3)) == 7


def test_what_attempts_before_left_goes_when_it_is_not_needed(tmp_path: Path) -> None:
    Checkpoints(str(tmp_path), 1).save(_state(1))
    second = Checkpoints(str(tmp_path), 2)
    second.save(_state(2))
    assert {path.parent.name for path in _saved(tmp_path)} == {"1", "2"}
    second.save(_state(3))
    assert {path.parent.name for path in _saved(tmp_path)} == {"2"}


def test_no_tuner_can_claim_them(tmp_path: Path) -> None:
    folder = folder_of(str(tmp_path), "mine-1", 3)
    for path in (folder, ".checkpoints", "a/../.checkpoints/mine-1/3", ".checkpoints/new"):
        with pytest.raises(PathOutsideRoot, match="checkpoints"):
            resolve_in_root(str(tmp_path), path)
    assert resolve_in_root(str(tmp_path), "a/.checkpoints") == "a/.checkpoints"


def test_a_rename_that_a_crashed_server_had_done_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.rename

    def rename(source: str, target: str, **at: int) -> None:
        real(source, target, **at)
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "rename", rename)
    Checkpoints(str(tmp_path), 1).save(_state(4))
    monkeypatch.undo()
    assert _step(Checkpoints(str(tmp_path), 2)) == 4


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    """What a link could lead to, with names such as ours."""
    (tmp_path / "home" / "1" / "thesis").mkdir(parents=True)
    (tmp_path / "home" / "1" / "thesis" / "text.tex").write_text("years of work")
    (tmp_path / "home" / "1" / "000001-abc").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize("where", ["", "/e1", "/e1/7", "/e1/7/.saved", "/e1/7/.saved/2"])
@pytest.mark.parametrize("late", [False, True])
def test_links_that_others_put_into_the_root_are_not_followed(
    tmp_path: Path, thesis: Path, where: str, late: bool
) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "called").symlink_to(tmp_path / "share")  # the root's own path may have some
    folder = folder_of(str(tmp_path / "called"), "e1", 7)
    before = sorted(str(path) for path in thesis.rglob("*"))
    checkpoints = Checkpoints(folder, 2)
    link = tmp_path / "share" / f".checkpoints{where}"
    if late:
        for step in range(3):
            checkpoints.save(_state(step))
        link.rename(tmp_path / "aside")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(thesis)
    for act in (lambda: checkpoints.save(_state(9)), checkpoints.load, lambda: make_folder(folder)):
        if act.__name__ == "<lambda>" and where.endswith((".saved", ".saved/2")):
            continue  # made below by save, and above by make_folder
        with pytest.raises(PathThroughLink, match="symbolic link is in the way"):
            act()
    assert sorted(str(path) for path in thesis.rglob("*")) == before


def test_links_among_checkpoints_go_and_what_they_lead_to_stays(
    tmp_path: Path, thesis: Path
) -> None:
    first = Checkpoints(str(tmp_path / "cp"), 1)
    for step in range(2):
        first.save(_state(step))
    saved = tmp_path / "cp" / ".saved"
    for name in ("000001-link", "000000-link"):
        (saved / "1" / name).symlink_to(thesis)
    (saved / "1" / ".draft-3").symlink_to(thesis)
    (saved / "0").symlink_to(thesis)
    (saved / "²").mkdir()  # a digit of no number
    second = Checkpoints(str(tmp_path / "cp"), 2)
    for step in range(3):
        second.save(_state(step))
    assert (thesis / "1" / "thesis" / "text.tex").read_text() == "years of work"
    assert not (saved / "1").exists()
    assert _step(Checkpoints(str(tmp_path / "cp"), 3)) == 2
