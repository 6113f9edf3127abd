"""What lies in a work folder is known by its name: the folder must be ours, and the way to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.platforms.ssh.provisioning import fit
from dispatcher.remote_python.errors import HostUnfit
from dispatcher.remote_python.leftovers import what_is_left
from dispatcher.remote_python.probed import Probe, Probed, probe, problem_with
from dispatcher.ssh import SshTarget
from tests.support.remote_python import Here

ANOTHER = 65534

only_root = pytest.mark.skipif(os.getuid() != 0, reason="gives folders to another user")


@pytest.fixture
def here() -> Any:
    return Here()


def machine(folder: Path) -> Machine:
    return Machine("far", lambda: SshTarget("far"), python=sys.executable, work_folder=str(folder))


def asked(here: Any, folder: Path, *trees: str, make: bool = True) -> Probed:
    return probe(machine(folder).python_on(here), Probe(str(folder), make=make, trees=trees))


def trouble(here: Any, folder: Path) -> str:
    """What the start of an agent says; ``hosts check`` refuses the same, before and after."""
    before = asked(here, folder, f"runtime/{'0' * 64}", make=False)
    found = asked(here, folder, f"runtime/{'0' * 64}")
    after = asked(here, folder, f"runtime/{'0' * 64}", make=False)
    refused = bool(found.folder_trouble)
    assert refused == bool(before.folder_trouble) == bool(after.folder_trouble)
    assert bool(found.folder_trouble) == bool(problem_with(found, "python3", (3, 9)))
    return found.folder_trouble


def a_runtime(folder: Path) -> None:
    (folder / "runtime" / ("0" * 64) / "trial_runtime").mkdir(parents=True)


def test_a_folder_that_is_made_for_us_is_ours(here: Any, tmp_path: Path) -> None:
    """Twice: what was made before is there."""
    work = tmp_path / "a" / "b"
    assert [trouble(here, work), trouble(here, work)] == ["", ""]
    assert work.stat().st_mode & 0o077 == 0
    a_runtime(work)
    assert asked(here, work).runtime == ["0" * 64]


@only_root
@pytest.mark.parametrize("place", ["", "runtime", "code", "modules", "experiments", "above"])
def test_one_that_somebody_else_made_first_is_refused(
    here: Any, tmp_path: Path, place: str
) -> None:
    """Mutation: their runtime is believed by its name, and runs as us."""
    work = tmp_path / "above" / "work"
    a_runtime(work)
    theirs = work.parent if place == "above" else work / place
    theirs.mkdir(exist_ok=True)
    os.chown(theirs, ANOTHER, ANOTHER)
    found = asked(here, work)
    assert found.folder_trouble == f"{theirs} belongs to another user (uid {ANOTHER})"
    assert (found.runtime, found.code, found.modules) == ([], [], [])
    archives: Any = SimpleNamespace(
        runtime=SimpleNamespace(digest="0" * 64), code=SimpleNamespace(digest="1" * 64)
    )
    with pytest.raises(HostUnfit, match="belongs to another user"):
        fit(here, machine(work), archives)


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
@pytest.mark.parametrize("place", ["", "runtime", f"runtime/{'0' * 64}"])
def test_one_that_others_can_change_is_refused(
    here: Any, tmp_path: Path, place: str, mode: int
) -> None:
    work = tmp_path / "work"
    a_runtime(work)
    (work / place).chmod(mode)
    said = trouble(here, work)
    assert said == f"{work / place} can be changed by other users (mode {mode:o})".replace(
        "/ can", " can"
    )


def test_one_in_a_folder_where_all_may_make_entries_is_ours(here: Any, tmp_path: Path) -> None:
    """As in /tmp: nobody can rename what is ours. Without the sticky bit anybody can."""
    common = tmp_path / "scratch"
    common.mkdir()
    common.chmod(0o1777)
    assert trouble(here, common / "work") == ""
    common.chmod(0o777)
    assert "can be changed by other users" in trouble(here, common / "work")


@only_root
def test_a_group_that_others_are_in_can_change_it(here: Any, tmp_path: Path) -> None:
    """A user's own group is nobody else's: the usual umask of some systems writes for it."""
    work = tmp_path / "work"
    here.umask = 0o002
    a_runtime(work)
    work.chmod(0o770)
    assert trouble(here, work) == ""  # group root, of root alone
    os.chown(work, 0, ANOTHER)
    assert "can be changed by other users" in trouble(here, work)


def test_a_link_of_ours_leads_where_it_leads(here: Any, tmp_path: Path) -> None:
    true = tmp_path / "true"
    true.mkdir(0o700)
    (tmp_path / "link").symlink_to("true")
    assert trouble(here, tmp_path / "link" / "work") == ""
    (tmp_path / "round").symlink_to("round")
    assert trouble(here, tmp_path / "round") != ""
    true.chmod(0o777)
    assert "can be changed by other users" in trouble(here, tmp_path / "link" / "work")


@only_root
def test_a_link_of_somebody_else_s_leads_nowhere(here: Any, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir(0o700)
    (tmp_path / "link").symlink_to("work")
    os.chown(tmp_path / "link", ANOTHER, ANOTHER, follow_symlinks=False)
    assert "belongs to another user" in trouble(here, tmp_path / "link")


@only_root
def test_nothing_is_removed_by_names_in_somebody_else_s_folder(here: Any, tmp_path: Path) -> None:
    """They may be links to what is ours. Mutation: ``leftovers.py`` does not look."""
    ours = tmp_path / "home" / "thesis"
    ours.mkdir(parents=True)
    work = tmp_path / "work"
    (work / "experiments").mkdir(parents=True)
    (work / "experiments" / "e").symlink_to(tmp_path / "home")
    assert list(what_is_left(machine(work).python_on(here), str(work))) == ["e/thesis"]
    os.chown(work / "experiments", ANOTHER, ANOTHER)
    with pytest.raises(PassingBackendError, match="belongs to another user"):
        what_is_left(machine(work).python_on(here), str(work))


def test_a_machine_that_was_never_used_has_nothing(here: Any, tmp_path: Path) -> None:
    none = tmp_path / "none"
    assert what_is_left(machine(none).python_on(here), str(none)) == {}
    assert not (tmp_path / "none").exists()
