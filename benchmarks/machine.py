"""What the benchmarks ran on, in Markdown: figures mean little without it."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import TypedDict

import psutil

from benchmarks.rows import quantile

COMMITS = 500


class Machine(TypedDict):
    """A machine, as far as figures depend on it."""

    cores: str
    memory: str
    system: str
    python: str
    disk: str


def machine() -> Machine:
    """Describe this machine; blocks for about a second, for the disk."""
    load = os.getloadavg()[0]
    return Machine(
        cores=f"{_usable_cores()} × {_model()} (load {load:.1f} when the run began)",
        memory=f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        disk=_disk(),
    )


def markdown(one: Machine) -> str:
    """A list, one line a fact."""
    return "\n".join(f"- {key.capitalize()}: {value}" for key, value in one.items())


def commit_times_s(folder: Path, commits: int = COMMITS) -> list[float]:
    """How long single-row transactions take that are safe on disk (SQLite, WAL, FULL)."""
    base = sqlite3.connect(folder / "commits.sqlite", isolation_level=None)
    try:
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA synchronous=FULL")
        base.execute("CREATE TABLE entry (number INTEGER PRIMARY KEY, text TEXT)")
        times = []
        for _ in range(commits):
            began = time.perf_counter()
            base.execute("BEGIN IMMEDIATE")
            base.execute("INSERT INTO entry (text) VALUES (?)", ("x" * 200,))
            base.execute("COMMIT")
            times.append(time.perf_counter() - began)
        return times
    finally:
        base.close()


def _disk() -> str:
    with tempfile.TemporaryDirectory(prefix="bq-disk-") as folder:
        times = commit_times_s(Path(folder))
        kind = _filesystem(Path(folder))
    p50, p99 = (1000 * quantile(times, share) for share in (0.5, 0.99))
    return (
        f"{kind}; a durable commit of one row (SQLite, WAL, FULL) takes {p50:.2f} ms at p50, "
        f"{p99:.2f} ms at p99"
    )


def _filesystem(folder: Path) -> str:
    """The type of the mount that holds the folder."""
    holders = [
        part
        for part in psutil.disk_partitions(all=True)
        if folder.resolve().is_relative_to(part.mountpoint)
    ]
    return max(holders, key=lambda part: len(part.mountpoint)).fstype if holders else "unknown"


def _usable_cores() -> int:
    """Cores this process may use, which a container may have made fewer."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


if __name__ == "__main__":
    print(markdown(machine()))
