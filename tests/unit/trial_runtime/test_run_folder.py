"""The folder for sockets, also where somebody else has put something in its place."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from trial_runtime.run_folder import RECORD, RunFolderTaken, run_folder_below

NOBODY = 65534


def _folder_of_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can play another user")
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)


def _link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    folder = tmp_path / "experiment"
    folder.mkdir()
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@pytest.fixture(
    params=[_folder_of_another, _link, Path.touch, lambda path: path.symlink_to("nowhere")],
    ids=["of another user", "a link", "a file", "a dangling link"],
)
def in_the_way(request: pytest.FixtureRequest, base: Path) -> Path:
    put: Callable[[Path], None] = request.param
    path = base / f"bequeath-{os.getuid()}"
    put(path)
    return path


def test_what_is_in_the_way_stops_nobody(in_the_way: Path, base: Path, experiment: Path) -> None:
    """Mutation: an error: anybody could keep us from running."""
    before = in_the_way.lstat()
    found = run_folder_below(base, experiment)
    assert found.parent == base
    assert stat.S_IMODE(found.lstat().st_mode) == 0o700
    assert run_folder_below(base, experiment) == found  # each process finds the same
    assert stat.S_IMODE((experiment / RECORD).stat().st_mode) == 0o600
    assert in_the_way.lstat().st_mtime == before.st_mtime
    if in_the_way.is_symlink() or not in_the_way.is_dir():
        in_the_way.unlink()
    else:
        in_the_way.rmdir()
    assert run_folder_below(base, experiment) == found  # agents that run know of no other


def test_a_copy_has_its_own(in_the_way: Path, base: Path, experiment: Path) -> None:
    found = run_folder_below(base, experiment)
    copy = experiment.with_name("copy")
    shutil.copytree(experiment, copy)
    assert run_folder_below(base, copy) != found
    assert run_folder_below(base, experiment) == found


def test_without_a_folder_to_note_it_in(in_the_way: Path, base: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFolderTaken):
        run_folder_below(base, tmp_path / "not there")
    assert list(base.iterdir()) == [in_the_way] or in_the_way.is_symlink()


@pytest.mark.parametrize("what", ["gone", "open to others", "a link"])
def test_a_noted_folder_that_cannot_be_trusted(base: Path, experiment: Path, what: str) -> None:
    """As after a reboot, when anybody may have made one of that name."""
    noted = base / "bequeath-abc"
    if what == "open to others":
        noted.mkdir()
        noted.chmod(0o755)
    elif what == "a link":
        noted.symlink_to(experiment)
    (experiment / RECORD).write_text(f"{noted}\0{experiment}")
    assert run_folder_below(base, experiment).parent == base / f"bequeath-{os.getuid()}"


def test_in_the_usual_place(base: Path, experiment: Path) -> None:
    found = run_folder_below(base, experiment)
    assert found.parent == base / f"bequeath-{os.getuid()}"
    assert not (experiment / RECORD).exists()
    assert run_folder_below(base, experiment) == found
