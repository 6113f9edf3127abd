"""Many who look at once: what they cost the engine, and the web process."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import psutil

from benchmarks.peers.made_trials import TOGETHER, MadeTrial, made_trials
from benchmarks.rows import Row, median, row
from benchmarks.web.searching import PacedSearch, paced_search
from benchmarks.web.stores import EXPERIMENT, gone_on, made
from dispatcher.folders.names import STORE_NAME
from dispatcher.store import SqliteJournal
from tests.support.web_server import WebServer

MANY, RATE = 20, 200.0
CPU, MEMORY_MB, SLOPE_MB = 1.02, 150.0, 1.0

#: Seconds of a window in which the head's processor time is taken, and pairs of them.
WINDOW_S, PAIRS = 10.0, 5

#: Minutes for which memory is watched, unless this variable names others (an hour: 60).
MINUTES, MINUTES_BY = 2.5, "BEQUEATH_BENCH_WEB_MINUTES"

#: Seconds after which each leaves and comes back, so that a leak of a connection shows; and those
#: for which nothing is counted: each has come three times then, and all that is kept is full.
AGAIN_S, WARM_S = 20.0, 75.0

MB = 1e6


@contextmanager
def crowd(server: WebServer, experiment: str, many: int, again_s: float = 0.0) -> Iterator[None]:
    """So many who look, each with a stream from which something has come."""
    words = [str(server.port), server.cookie(), experiment, str(many)]
    words += [str(again_s)] if again_s else []
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.web.crowd", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for _ in range(many):
            assert process.stdout.readline() == "ready\n", "one of them has come to grief"
        yield
        assert process.poll() is None, "one of them has come to grief"
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def cpu_of_head(*, quick: bool = False) -> list[Row]:
    """The head's processor time a trial, with twenty who look and without, in turns."""
    window, pairs = (2.0, 1) if quick else (WINDOW_S, PAIRS)
    ratios, alone = [], []
    with (
        tempfile.TemporaryDirectory(prefix="bq-web-") as name,
        paced_search(Path(name), RATE) as search,
    ):
        _window(search, window / 2)  # until all is warm
        for turn in range(pairs):
            order = (True, False) if turn % 2 else (False, True)
            took = {}
            for seen in order:
                with _looked_at(search, Path(name) / f"state-{turn}", seen=seen):
                    took[seen] = _window(search, window)
            ratios.append(took[True] / took[False])
            alone.append(took[False])
    ratio, least, most = median(ratios), min(ratios), max(ratios)
    spread = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0.0
    return [
        row(
            f"processor time of the head, {RATE:.0f} trials/s, {MANY} who look, against nobody",
            f"≤ {CPU:g} ×",
            f"{ratio:.3f} ×",
            None if quick else ratio <= CPU,
            f"median of {pairs} pairs of {window:.0f} s, {least:.3f} to {most:.3f}, standard error "
            f"{spread:.3f}; {median(alone) * 1e6:.0f} µs a trial without. Clients that read as a "
            "page does: as many Chromiums do not fit on two cores",
        )
    ]


@contextmanager
def _looked_at(search: PacedSearch, state: Path, *, seen: bool) -> Iterator[None]:
    if not seen:
        yield
        return
    server = WebServer(search.home, state)
    try:
        with crowd(server, search.name, MANY):
            yield
    finally:
        server.end()


def _window(search: PacedSearch, seconds: float) -> float:
    """Processor seconds of the head for each trial that ends within a window."""
    over, cpu = search.over(), search.head_cpu_s()
    time.sleep(seconds)
    many = search.over() - over
    assert many > 0, "the search stands still"
    return (search.head_cpu_s() - cpu) / many


def memory_of_web(*, quick: bool = False) -> list[Row]:
    """The web process with 10,000 trials of which some report all the time, and twenty who look."""
    trials, metrics = (400, 20) if quick else (10_000, 100)
    minutes = 0.2 if quick else float(os.environ.get(MINUTES_BY, MINUTES))
    with tempfile.TemporaryDirectory(prefix="bq-web-") as name:
        home = Path(name) / "home"
        shutil.copytree(made(trials, metrics), home)
        server = WebServer(home, Path(name) / "state")
        try:
            with _reporting(home, trials), crowd(server, EXPERIMENT, MANY, AGAIN_S):
                process = psutil.Process(server.process.pid)
                first = _memory(process, 1.0 if quick else WARM_S)
                samples = _memory(process, minutes * 60)
        finally:
            server.end()
    most = max(size for _, size in [*first, *samples])
    late = samples[len(samples) // 2 :]
    # Means of thirds: how many come and go at a moment is as chance has it.
    third = max(1, len(late) // 3)
    grown = (_mean(late[-third:]) - _mean(late[:third])) / MB
    return [
        row(
            f"memory of the web process, {trials:,} trials, {MANY} who look",
            f"≤ {MEMORY_MB:.0f} MB",
            f"{most / MB:.0f} MB",
            most <= MEMORY_MB * MB,
            f"the most in {minutes:g} minutes; each leaves and comes back every {AGAIN_S:.0f} s",
        ),
        row(
            "… in its second half",
            f"≤ {SLOPE_MB:g} MB more",
            f"{grown:+.2f} MB",
            None if quick else grown <= SLOPE_MB,
            f"its last third against its first, {minutes / 6:.2g} minutes each, after "
            f"{WARM_S:.0f} s for warming up; 16 intermediate values a second come and no trial "
            f"does, since a table grows with its trials; {MINUTES_BY}=60 watches for an hour",
        ),
    ]


def _mean(samples: list[tuple[float, int]]) -> float:
    return statistics.fmean(size for _, size in samples)


def _memory(process: psutil.Process, seconds: float) -> list[tuple[float, int]]:
    began = time.monotonic()
    samples = []
    while (at := time.monotonic() - began) < seconds:
        samples.append((at, process.memory_info().rss))
        time.sleep(1.0)
    return samples


@contextmanager
def _reporting(home: Path, trials: int) -> Iterator[None]:
    """Four trials run and report, by the core and the journal, until the block is left."""
    drawn = made_trials(trials + TOGETHER, 0)
    some: list[MadeTrial] = list(islice(drawn, trials, None))
    enough = threading.Event()

    def report() -> None:
        with closing(SqliteJournal.open(home / EXPERIMENT / STORE_NAME)) as journal:
            writer = gone_on(home, journal)
            writer.begin(some)
            step = 0
            while not enough.wait(0.25):
                writer.now += 0.25
                writer.report(some, step, value=1 / (1 + step % 1_000))
                step += 1

    thread = threading.Thread(target=report, name="reports")
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
