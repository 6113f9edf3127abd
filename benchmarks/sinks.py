"""What it costs to feed TensorBoard: processor seconds of a process that does nothing else.

The store is that of a head that ran so many trials, written by the core itself. The sink's process
is the one that users have (``bequeath sink``), its start included.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.rows import Row, row
from benchmarks.store import batches_of, write_batches
from dispatcher.store import SqliteJournal

TRIALS, METRICS = 1_000, 100
TARGET_S = 2.0


def run(*, quick: bool = False) -> list[Row]:
    """All rows; ``quick`` has fewer trials, and no target."""
    trials = TRIALS // 5 if quick else TRIALS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "fed-1"
        folder.mkdir()
        with closing(SqliteJournal.open(folder / "journal.sqlite", epoch=1)) as journal:
            write_batches(journal, batches_of(trials, metrics=METRICS))
        cpu_s, wall_s = _fed(folder, Path(name) / "out")
        files = [path for path in (Path(name) / "out").rglob("*tfevents*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
    assert len(files) == trials + 1, "a file for each trial, and one for the experiment"
    what = f"sinks: TensorBoard, {trials:,} trials × {METRICS} points, CPU of its process"
    detail = (
        f"{wall_s:.1f} s in all; {len(files):,} files, {size / 1e6:.1f} MB; "
        f"{cpu_s / trials / METRICS * 1e6:.1f} µs a point"
    )
    ok = None if quick else cpu_s <= TARGET_S
    return [row(what, "" if quick else f"≤ {TARGET_S:g} s", f"{cpu_s:.2f} s", ok, detail)]


def _fed(folder: Path, out: Path) -> tuple[float, float]:
    """Processor seconds and seconds of a process that writes an experiment for TensorBoard."""
    command = [sys.executable, "-m", "dispatcher.cli", "sink", str(folder)]
    command += ["--kind", "tensorboard", "--folder", str(out)]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, "the sink failed"
    return usage.ru_utime + usage.ru_stime, time.monotonic() - began
