"""An attempt that was given up while it saved, and lives on: its successor's weights stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.faults.experiments import ROOT
from trial_runtime import failpoints, weights
from trial_runtime.agent.attempts.preparing import make_room

_SAVE = """
import sys
import numpy as np
from trial_runtime import weights
root, path = sys.argv[1:]
state = {"w": np.full(100, 1.0), "head": np.full(7, 1.0)}
weights.save(state, path, root=root, writer="3.1")
"""


def _zombie(root: Path, path: Path, place: str) -> subprocess.Popen[bytes]:
    """Attempt 1, stopped where the plan says."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SAVE, str(root), str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), failpoints.VARIABLE: f"{place}=stop"},
        stderr=subprocess.PIPE,
    )
    _pid, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), "it was never there"
    return process


@pytest.mark.parametrize(
    "place",
    [
        "weights.data.written",
        "weights.data.synced",
        "weights.data.renamed",
        "weights.manifest.written",
        "weights.manifest.synced",
        "weights.manifest.renamed",
    ],
)
def test_it_writes_nothing_into_what_its_successor_published(place: str, tmp_path: Path) -> None:
    root, path = tmp_path / "weights", tmp_path / "weights" / "3"
    root.mkdir()
    zombie = _zombie(root, path, place)
    try:
        make_room(str(path), 2)
        state = {"w": np.full(100, 2.0), "head": np.full(7, 2.0)}
        published = weights.save(state, path, root=str(root), writer="3.2")
        files = {each.name: each.read_bytes() for each in path.iterdir()}
        zombie.send_signal(signal.SIGCONT)
        _out, said = zombie.communicate(timeout=60)
    finally:
        zombie.kill()
        zombie.wait()
    assert {each.name: each.read_bytes() for each in path.iterdir()} == files, said.decode()
    found = weights.load(path, digest=published.digest, root=str(root), stale_timeout_s=0.0)
    assert found["w"][0] == found["head"][0] == 2.0


def test_one_that_begins_to_save_later_is_refused(tmp_path: Path) -> None:
    root, path = tmp_path / "weights", tmp_path / "weights" / "3"
    root.mkdir()
    published = weights.save({"w": np.ones(3)}, path, root=str(root), writer="3.2")
    done = subprocess.run(
        [sys.executable, "-c", _SAVE, str(root), str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "already holds weights of trial 3.2; this is 3.1" in done.stderr
    weights.verify(path, published.digest, root=str(root))


def test_an_empty_folder_that_it_holds_is_not_its_successors(tmp_path: Path) -> None:
    path = tmp_path / "3"
    path.mkdir()
    held = os.open(path, os.O_RDONLY)  # it has made its folder, and written nothing yet
    make_room(str(path), 2)
    assert os.fstat(held).st_ino != path.stat().st_ino or os.fstat(held).st_nlink == 0
    with pytest.raises(FileNotFoundError):
        os.open("manifest.json", os.O_WRONLY | os.O_CREAT, dir_fd=held)
    assert list(path.iterdir()) == []
    os.close(held)


@pytest.mark.parametrize("place", ["weights.data.written", "weights.data.renamed"])
def test_it_publishes_where_it_began_though_its_successor_has_not(
    place: str, tmp_path: Path
) -> None:
    root, path = tmp_path / "weights", tmp_path / "weights" / "3"
    root.mkdir()
    zombie = _zombie(root, path, place)
    try:
        make_room(str(path), 2)
        path.mkdir()  # its successor has begun to save, and written nothing yet
        zombie.send_signal(signal.SIGCONT)
        zombie.communicate(timeout=60)
    finally:
        zombie.kill()
        zombie.wait()
    assert list(path.iterdir()) == []


@pytest.mark.parametrize("place", ["weights.data.written", "weights.data.renamed"])
def test_it_is_refused_in_a_folder_that_nobody_set_aside(place: str, tmp_path: Path) -> None:
    root, path = tmp_path / "weights", tmp_path / "weights" / "3"
    root.mkdir()
    zombie = _zombie(root, path, place)
    try:
        published = weights.save({"w": np.ones(3)}, path, root=str(root), writer="3.2")
        zombie.send_signal(signal.SIGCONT)
        _out, said = zombie.communicate(timeout=60)
    finally:
        zombie.kill()
        zombie.wait()
    assert b"already holds weights of trial 3.2; this is 3.1" in said
    weights.verify(path, published.digest, root=str(root), stale_timeout_s=0.0)
    assert len(list(path.glob("*.safetensors"))) == 1, "it takes back what it wrote"
