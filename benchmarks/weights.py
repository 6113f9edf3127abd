"""The weight store against torch.save, torch.load and a raw write: time and bytes.

Repetitions of all candidates are interleaved, so that a disk or a neighbour that changes
its mind changes it for everybody; figures are medians, targets are ratios of medians.
Needs torch, about four times the size in disk and twice in memory.

    python -m benchmarks.weights [--mib 1024] [--repetitions 5] [--folder DIR]
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.rows import Row

LAYERS = 80  # tensors; the last one is small, as in real networks


def run(folder: str | None = None, *, mib: int = 1024, repetitions: int = 5) -> list[Row]:
    """Measure everything; blocks for about a minute at one gibibyte.

    Args:
        folder: where to write; should be on the disk that weights live on.
        mib: size of the tensors, in MiB.
        repetitions: of each candidate.
    """
    scratch = Path(tempfile.mkdtemp(prefix="weights-", dir=folder))
    try:
        state = _state(mib)
        return [
            *_saving(state, scratch, repetitions),
            *_loading(state, scratch, repetitions),
            _partial(state, scratch),
            _inherited(state, scratch),
        ]
    finally:
        shutil.rmtree(scratch)


def _state(mib: int) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    each = mib * (1 << 20) // 4 // LAYERS
    state = {f"layers.{i}.weight": torch.randn(each) for i in range(LAYERS)}
    state["head.bias"] = torch.randn(1000)
    return state


def _nbytes(state: dict[str, Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in state.values())


def _timed(
    candidates: dict[str, Callable[[], object]],
    repetitions: int,
    between: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Median seconds of each; the order turns with each round, the first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    order = list(candidates)
    for round_number in range(repetitions + 1):
        for name in order:
            between()
            began = time.perf_counter()
            candidates[name]()
            seconds = time.perf_counter() - began
            if round_number:
                taken[name].append(seconds)
        order = [*order[1:], order[0]]
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def _saving(state: dict[str, Any], scratch: Path, repetitions: int) -> list[Row]:
    import torch

    from trial_runtime.weights import save

    total = _nbytes(state)

    def raw() -> None:
        fd = os.open(scratch / "raw", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for tensor in state.values():
            left = memoryview(tensor.numpy()).cast("B")
            while left:
                left = left[os.write(fd, left[: 8 << 20]) :]
        os.fsync(fd)
        os.close(fd)

    def torch_save() -> None:
        with open(scratch / "torch.pt", "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())

    def clean() -> None:
        # Everybody writes new files, and nobody writes while another's pages are flushed.
        for name in ("raw", "torch.pt"):
            (scratch / name).unlink(missing_ok=True)
        shutil.rmtree(scratch / "ours", ignore_errors=True)
        os.sync()

    seconds = _timed(
        {"raw": raw, "torch.save": torch_save, "ours": lambda: save(state, scratch / "ours")},
        repetitions,
        clean,
    )
    clean()
    detail = ", ".join(f"{name} {total / s / 1e9:.2f} GB/s" for name, s in seconds.items())
    to_raw = seconds["raw"] / seconds["ours"]
    to_torch = seconds["torch.save"] / seconds["ours"]
    return [
        _row(f"save {total / 1e9:.2f} GB durably, against raw write + fsync", to_raw, 0.9, detail),
        _row("… against torch.save + fsync", to_torch, 1.0, detail),
    ]


def _loading(state: dict[str, Any], scratch: Path, repetitions: int) -> list[Row]:
    import torch

    from trial_runtime.weights import load, save

    total = _nbytes(state)
    published = save(state, scratch / "ours")
    torch.save(state, scratch / "torch.pt")
    os.sync()
    into = {name: torch.zeros_like(tensor) for name, tensor in state.items()}

    def torch_load() -> None:
        stored = torch.load(scratch / "torch.pt", weights_only=True)
        for name, tensor in into.items():
            tensor.copy_(stored[name])

    def ours() -> None:
        assert load(scratch / "ours", into, digest=published.digest).complete

    def unchecked() -> None:
        assert load(scratch / "ours", into, verify=False).complete

    seconds = _timed(
        {"torch.load": torch_load, "ours": ours, "ours without digests": unchecked}, repetitions
    )
    assert all(torch.equal(into[name], tensor) for name, tensor in state.items())
    (scratch / "torch.pt").unlink()
    shutil.rmtree(scratch / "ours")
    detail = ", ".join(f"{name} {total / s / 1e9:.2f} GB/s" for name, s in seconds.items())
    checked = seconds["torch.load"] / seconds["ours"]
    without = seconds["torch.load"] / seconds["ours without digests"]
    title = f"load {total / 1e9:.2f} GB into existing parameters"
    return [
        _row(f"{title}, digests checked, against torch.load", checked, 3.0, detail),
        _row("… without digests", without, 5.0, detail),
    ]


def _partial(state: dict[str, Any], scratch: Path) -> Row:
    from trial_runtime.weights import load, save

    save(state, scratch / "ours")
    (file,) = (scratch / "ours").glob("*.safetensors")
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = _resident_bytes(file)
    names = [f"layers.{i}.weight" for i in range(0, LAYERS, 10)]
    began = time.perf_counter()
    report = load(scratch / "ours", {name: state[name].clone() for name in names})
    seconds = time.perf_counter() - began
    read = _resident_bytes(file) - before
    share = read / file.stat().st_size
    shutil.rmtree(scratch / "ours")
    return Row(
        what="load 10 % of the tensors: bytes read from the disk",
        target="≤ 12 %",
        measured=f"{share:.1%}",
        ok=report.complete and 0 < share <= 0.12,
        detail=f"{read:,} bytes in the page cache afterwards, {seconds * 1e3:.0f} ms, cold",
    )


def _resident_bytes(path: Path) -> int:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        mapping = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    flags = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), flags)
    return sum(flag & 1 for flag in flags) * mmap.PAGESIZE


def _inherited(state: dict[str, Any], scratch: Path) -> Row:
    from trial_runtime.weights import save

    parent = save(state, scratch / "parent")
    child_state = {
        name: tensor + 1 if i % 10 == 0 else tensor
        for i, (name, tensor) in enumerate(state.items())
    }
    began = time.perf_counter()
    child = save(child_state, scratch / "child", parent=scratch / "parent")
    seconds = time.perf_counter() - began
    on_disk = sum(file.stat().st_size for file in (scratch / "child").iterdir())
    share = on_disk / parent.bytes_written
    return Row(
        what="save a child with 90 % of its tensors unchanged: bytes written",
        target="≤ 12 %",
        measured=f"{share:.1%}",
        ok=share <= 0.12,
        detail=f"{child.tensors_inherited} of {len(state)} inherited, {seconds * 1e3:.0f} ms",
    )


def _row(what: str, ratio: float, target: float, detail: str) -> Row:
    return Row(
        what=what,
        target=f"≥ {target:g} ×",
        measured=f"{ratio:.2f} ×",
        ok=ratio >= target,
        detail=detail,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--folder")
    given = parser.parse_args()
    for row in run(given.folder, mib=given.mib, repetitions=given.repetitions):
        verdict = "ok  " if row["ok"] else "MISS"
        print(f"{verdict} {row['what']}: {row['measured']} ({row['target']}); {row['detail']}")


if __name__ == "__main__":
    main()
