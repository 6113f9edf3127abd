"""What was compared is what is loaded, whoever may write to the file meanwhile."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trial_runtime
from trial_runtime import session
from trial_runtime.agent.attempts.preparing import verify_parent
from trial_runtime.errors import CorruptWeights, StaleWeights, WeightsNotFound
from trial_runtime.session_file import SessionFile
from trial_runtime.weights import digest_tree, load, save, verify
from trial_runtime.weights.read import held
from trial_runtime.weights.storage import roots

COUNT = 200_000


@pytest.fixture
def saved(root: Path) -> Path:
    save({"w": np.arange(COUNT, dtype=np.float32)}, root / "1")
    return root / "1"


def data_file(folder: Path) -> Path:
    (file,) = folder.glob("*.safetensors")
    return file


def spoil(file: Path) -> None:
    """Change the tensors in place, as whoever may write to the file can."""
    size = file.stat().st_size
    with open(file, "r+b") as opened:
        opened.seek(size - COUNT * 4)
        opened.write(np.full(COUNT, 666, np.float32).tobytes())


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the pieces that were read rather than mapped."""
    found: list[int] = []
    real = os.preadv

    def preadv(fd: int, buffers: Any, offset: int) -> int:
        found.append(real(fd, buffers, offset))
        return found[-1]

    monkeypatch.setattr(os, "preadv", preadv)
    return found


def foreign(path: Path, how: str) -> None:
    if how == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(path, 65534, 65534)
    else:
        path.chmod({"group": 0o664, "all": 0o646}[how])


@pytest.mark.parametrize("how", ["owner", "group", "all"])
def test_weights_that_others_may_write_to_are_copied_before_they_are_compared(
    saved: Path, reads: list[int], how: str
) -> None:
    foreign(data_file(saved), how)
    digest = verify(saved).digest
    del reads[:]
    state = load(saved, digest=digest)
    into = {"w": np.zeros(COUNT, np.float32)}
    load(saved, into, digest=digest)
    assert sum(reads) == 2 * COUNT * 4, "each time what was asked for, and once"
    spoil(data_file(saved))
    assert (state["w"] == np.arange(COUNT)).all()
    assert (into["w"] == np.arange(COUNT)).all()
    with pytest.raises(CorruptWeights, match="digest differs"):
        load(saved, digest=digest)


def test_weights_that_only_we_may_write_to_are_mapped(saved: Path, reads: list[int]) -> None:
    assert (load(saved)["w"] == np.arange(COUNT)).all()
    assert reads == []


def test_what_is_published_is_for_nobody_else_to_write_whatever_the_umask(
    root: Path, reads: list[int]
) -> None:
    before = os.umask(0o002)
    try:
        save({"w": np.arange(COUNT, dtype=np.float32)}, root / "1")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o022 for path in (root / "1").iterdir()} == {0}
    load(root / "1")
    assert reads == []


def test_a_file_of_others_that_is_cut_short_after_the_load_kills_nobody(saved: Path) -> None:
    data_file(saved).chmod(0o666)
    program = """
import os, sys
from trial_runtime import weights
state = weights.load(sys.argv[1], verify=False)
os.truncate(sys.argv[2], 1000)
print(int(state["w"][-1]))
"""
    argv = [sys.executable, "-c", program, str(saved), str(data_file(saved))]
    ran = subprocess.run(argv, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, f"{COUNT - 1}\n"), ran.stderr


class _Session:
    def __init__(self, file: SessionFile) -> None:
        self.file = file


@pytest.fixture
def child(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A trial whose parent left plain files: ``child(path)``."""

    def begin(path: Path) -> SessionFile:
        found = digest_tree(str(path))
        file = SessionFile(
            1, "", "", 1, 1, str(root), "{}", restore_path=str(path), restore_digest=found.digest,
            restore_kind="files", weights_root=str(root), stale_timeout_s=0.0,
        )  # fmt: skip
        session.adopt(_Session(file))  # type: ignore[arg-type]
        verify_parent(file)
        return file

    roots.forget()
    yield begin
    session.adopt(None)


def plain_safetensors(root: Path, value: float) -> bytes:
    save({"w": np.full(COUNT, value, np.float32)}, root / "other")
    return data_file(root / "other").read_bytes()


def test_plain_files_are_compared_by_who_loads_them(root: Path, child: Any) -> None:
    right, wrong = plain_safetensors(root, 1), plain_safetensors(root, 666)
    path = root / "t0.safetensors"
    path.write_bytes(right)
    child(path)
    assert trial_runtime.load_weights()["w"][0] == 1
    path.write_bytes(wrong)  # after the agent has compared it
    with pytest.raises(StaleWeights, match="an older state than was announced"):
        trial_runtime.load_weights()


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_a_plain_file_is_loaded_from_the_bytes_that_were_compared(
    root: Path, child: Any, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    right, wrong = plain_safetensors(root, 1), plain_safetensors(root, 666)
    folder = root / "t0"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(right)
    (folder / "model.safetensors").chmod(mode)
    (folder / "notes.txt").write_text("of the author")
    child(folder)
    from trial_runtime.weights.loading import sources

    verified = sources.hold_verified

    def swapped(*arguments: Any) -> Any:
        found = verified(*arguments)
        (folder / "new").write_bytes(wrong)
        if mode == 0o666:
            (folder / "model.safetensors").write_bytes(wrong)  # in place
        os.replace(folder / "new", folder / "model.safetensors")  # another file of that name
        return found

    monkeypatch.setattr(sources, "hold_verified", swapped)
    assert trial_runtime.load_weights()["w"][0] == 1


@pytest.mark.parametrize("seen", [False, True])
def test_a_file_that_went_before_the_comparison_is_none_of_those_compared(
    root: Path, child: Any, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    """Another writer shows a file of its own until it was chosen, or until a first look."""
    folder, evil = root / "t0", root / "t0" / "evil.safetensors"
    folder.mkdir()
    (folder / "notes.txt").write_text("of the author")
    digest = digest_tree(str(folder)).digest
    evil.write_bytes(plain_safetensors(root, 666))
    from trial_runtime.weights.loading import sources
    from trial_runtime.weights.read import plain

    looked = plain._digest_tree
    if seen:

        def once(*arguments: Any) -> Any:
            found = looked(*arguments)
            evil.unlink(missing_ok=True)
            return found

        monkeypatch.setattr(plain, "_digest_tree", once)
    else:
        chosen = sources._file_at
        monkeypatch.setattr(
            sources, "_file_at", lambda path: [chosen(path), evil.unlink(missing_ok=True)][0]
        )
    with pytest.raises(CorruptWeights, match="not one of the files that were committed"):
        load(folder, digest=digest, root=str(root), stale_timeout_s=5.0)


@pytest.mark.torch
def test_so_is_a_file_of_torch(root: Path, child: Any) -> None:
    import torch

    torch.save({"w": torch.ones(3)}, root / "t0.pt")
    child(root / "t0.pt")
    assert trial_runtime.load_weights()["w"].tolist() == [1, 1, 1]
    torch.save({"w": torch.full((3,), 666.0)}, root / "t0.pt")
    with pytest.raises(StaleWeights):
        trial_runtime.load_weights()


def test_several_plain_files_leave_a_choice_and_are_not_waited_for(root: Path, child: Any) -> None:
    (root / "t0").mkdir()
    for name in ("a.bin", "b.bin"):
        (root / "t0" / name).write_bytes(b"by the author's own means")
    child(root / "t0")
    with pytest.raises(WeightsNotFound, match="but 2 files"):
        trial_runtime.load_weights()


def test_a_file_is_held_in_pieces_and_an_empty_one_at_all(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "PIECE_BYTES", 1000)
    (root / "file").write_bytes(os.urandom(5500))
    (root / "file").chmod(0o666)
    kept = held.hold(str(root / "file"))
    assert isinstance(kept.memory, mmap.mmap)
    assert bytes(kept.memory) == (root / "file").read_bytes()
    (root / "empty").touch()
    assert held.hold(str(root / "empty")).nbytes == 0


def test_a_file_that_is_cut_short_while_it_is_copied(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "file").write_bytes(bytes(5000))
    (root / "file").chmod(0o666)
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: 0)
    with pytest.raises(CorruptWeights, match="shorter than announced"):
        held.hold(str(root / "file"))
