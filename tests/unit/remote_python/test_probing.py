"""A machine whose Python does not run: what is said is what that machine said."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.platforms.ssh.machine import Machine
from dispatcher.remote_python.bundle import OLDEST
from dispatcher.remote_python.errors import HostUnfit
from dispatcher.remote_python.on_host import probe as on_host
from dispatcher.remote_python.probed import FolderFacts, Probe, probe, problem_with
from dispatcher.ssh import SshTarget
from dispatcher.ssh.running import Ran
from tests.support.remote_python import python_here
from tests.unit.remote_python.answers import fit_machine


class Says:
    """A connection on which each command ends so."""

    def __init__(self, code: int, err: str) -> None:
        self.ran = Ran(code, b"", err.encode())

    def run(self, *words: Any, **settings: Any) -> Ran:
        return self.ran


@pytest.mark.parametrize(
    "err, text",
    [
        ("/bin/sh: 1: exec: /opt/py: not found", "has no '/opt/py'"),
        (
            "/opt/py: error while loading shared libraries: libpython3.12.so: no such file",
            "'/opt/py' does not run there (exit code 127): /opt/py: error while loading shared "
            "libraries: libpython3.12.so: no such file",
        ),
        (
            "bash: line 1: module: command not found",
            "'/opt/py' does not run there (exit code 127): bash: line 1: module: command not found",
        ),
    ],
)
def test_only_one_that_is_not_there_is_said_not_to_be_there(err: str, text: str) -> None:
    """Mutation: whatever ends with 127 is taken for a Python that is not there."""
    machine = Machine("gpu1", lambda: SshTarget("gpu1"), python="/opt/py")
    connection: Any = Says(127, err)
    with pytest.raises(HostUnfit) as caught:
        probe(machine.python_on(connection), Probe("~/w"))
    assert (caught.value.message, caught.value.where) == (text, "gpu1")
    assert "'python' of the machine" in caught.value.hint


@pytest.mark.parametrize(
    "changed, topic, words",
    [
        ({}, "", ""),
        ({"version": (3, 9, 2)}, "", ""),
        ({"version": (3, 8, 10)}, "python", "is Python 3.8.10 (/usr/bin/python3), and trials need"),
        ({"folder_trouble": "/home/dev/.bequeath: Permission denied"}, "disk", "'workFolder'"),
    ],
)
def test_what_a_machine_lacks_is_said(changed: dict[str, Any], topic: str, words: str) -> None:
    problem = problem_with(fit_machine(**changed), "python3", OLDEST)
    assert (problem.topic if problem else "") == topic
    assert words in (f"{problem.text}; {problem.hint}" if problem else "")


def test_the_probe_tells_what_is_there_and_makes_the_work_folder(tmp_path: Path) -> None:
    work = tmp_path / "work"
    told = probe(python_here(), Probe(str(work), modules=("json", "no_such_module")))
    assert told.version == sys.version_info[:3]
    assert (told.folder, told.code) == (str(work), [])
    assert told.missing["json"] == ""
    assert told.host.version == sys.version_info[:2]
    assert told.python.tag == sys.implementation.cache_tag
    assert "no_such_module" in told.missing["no_such_module"]
    assert work.stat().st_mode & 0o077 == 0
    assert told.free > 0
    assert told.cores == (os.cpu_count() or 0)


def test_a_machine_that_is_only_checked_is_left_as_it_was(tmp_path: Path) -> None:
    work = tmp_path / "a" / "work"
    told = probe(python_here(), Probe(str(work), make=False, modules=()))
    assert (told.folder_trouble, os.listdir(tmp_path)) == ("", [])
    tree = tmp_path / "code" / "tree"
    tree.mkdir(parents=True)
    os.utime(tree, (1, 1))
    again = probe(python_here(), Probe(str(tmp_path), make=False, trees=("code/tree",), modules=()))
    assert again.code == ["tree"]
    assert (sorted(os.listdir(tmp_path)), tree.stat().st_mtime) == (["code"], 1)


def test_a_folder_that_cannot_be_made_is_said_before_it_is_made(tmp_path: Path) -> None:
    """Mutation: ``hosts check`` finds no fault with a machine on which no agent can be started."""
    (tmp_path / "file").write_text("no folder")
    below = str(tmp_path / "file" / "work")
    troubles = [
        probe(python_here(), Probe(below, make=make, modules=())).folder_trouble
        for make in (False, True)
    ]
    assert all(troubles), troubles


def test_a_runtime_whose_unpacking_was_cut_short_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "runtime" / "whole" / "trial_runtime").mkdir(parents=True)
    (tmp_path / "runtime" / "cut" / ".part-x").mkdir(parents=True)
    assert probe(python_here(), Probe(str(tmp_path), modules=())).runtime == ["whole"]


def test_folders_are_looked_at_as_they_will_be_used(tmp_path: Path) -> None:
    for name in ("shared", "read"):
        (tmp_path / name).mkdir()
    (tmp_path / "shared" / "seen").touch()
    paths = {name: str(tmp_path / name) for name in ("shared", "read", "none")}
    asked = {paths["shared"]: "seen", paths["read"]: None, paths["none"]: ""}
    found = probe(python_here(), Probe(str(tmp_path), modules=(), folders=asked)).folders
    assert found == {
        paths["shared"]: FolderFacts(paths["shared"], there=True, writable=True, same=True),
        paths["read"]: FolderFacts(paths["read"], there=True),
        paths["none"]: FolderFacts(paths["none"], there=False),
    }
    assert sorted(os.listdir(tmp_path / "shared")) == ["seen"]


MOUNTS = """\
21 1 254:0 / / rw - ext4 /dev/vda rw
30 21 0:41 / /mnt/blobs rw,nosuid - fuse blobfuse2 rw,user_id=0
31 21 0:42 / /mnt/gcs rw - fuse.gcsfuse bucket rw
32 31 0:43 / /mnt/gcs/nas rw - nfs4 server:/nas rw
33 21 0:44 / /mnt/two\\040words rw - fuse.ossfs ossfs rw
34 21 0:45 / /mnt/lab rw - fuse.sshfs alice@lab: rw
"""


@pytest.mark.parametrize(
    "path, kind",
    [
        ("/mnt/blobs", "blobfuse2"),
        ("/mnt/gcs/bucket/weights", "gcsfuse"),
        ("/mnt/gcs/nas/weights", ""),
        ("/mnt/gcsother", ""),
        ("/mnt/two words/weights", "ossfs"),
        ("/mnt/lab", ""),
        ("/home", ""),
    ],
)
def test_a_store_of_objects_behind_a_folder_is_known(path: str, kind: str, tmp_path: Path) -> None:
    """Mutations: the first mount counts, and not the nearest; a name that begins alike does."""
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    assert on_host.objects_behind(path, str(table)) == kind
    assert on_host.objects_behind(path, str(tmp_path / "none")) == "", "nobody says"


def copies(old: str, new: str) -> None:
    shutil.copyfile(old, new)
    os.unlink(old)


def copies_beside(old: str, new: str) -> None:
    os.unlink(new)
    shutil.copyfile(old, new)


def refuses(old: str, new: str) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def is_full(old: str, new: str) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "rename, text",
    [
        (os.replace, ""),
        (copies, "copies a file"),
        (copies_beside, "copies a file"),
        (refuses, "renames no file: Operation not permitted"),
        (is_full, ""),
    ],
)
def test_a_folder_whose_renames_are_no_single_step_is_known(
    rename: Callable[[str, str], None], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child could load half of its parent there. Mutations: it is taken for a folder like any
    other; a full disk is taken for one that renames nothing; what was tried stays there."""
    monkeypatch.setattr(os, "replace", rename)
    facts = on_host.look_at_folder(str(tmp_path), "")
    assert facts["writable"]
    assert facts["renames"].startswith(text)
    assert bool(facts["renames"]) == bool(text)
    assert os.listdir(tmp_path) == []
