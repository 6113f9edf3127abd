"""From a parent's committed end to the start of its children: the gate's own time."""

from __future__ import annotations

import threading
import time

import psutil

from benchmarks.harness import Bench, bench
from benchmarks.rows import Row, median, quantile, row
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.settings import Settings

MS = 1000.0


def run(*, quick: bool = False) -> list[Row]:
    """All rows; ``quick`` takes a tenth of the children."""
    share = 10 if quick else 1
    return [
        *one_to_one(1_000 // share),
        *one_to_many(1_000 // share),
        *crowd(10_000 // share),
    ]


def one_to_one(count: int) -> list[Row]:
    """As many parents as children; parents end one at a time."""
    settings = Settings(slots=count + 1, lookahead=2 * count, max_trials=2 * count)
    with bench(settings, "Waiting", parents=count) as one:
        one.until(lambda: len(one.engine.state.blocked) == count, "children blocked")
        latencies = []
        for parent in range(count):
            one.finish(parent)
            child = count + parent
            one.until(lambda child=child: child in one.backend.started, "child started")
            latencies.append(one.backend.started[child] - one.journal.ended[parent])
            time.sleep(0.002)
    p50, p99 = median(latencies) * MS, quantile(latencies, 0.99) * MS
    return [
        row(
            f"parent's result committed → child's parameters sent, {count:,} pairs",
            "p50 ≤ 1.2 ms, p99 ≤ 5 ms",
            f"p50 {p50:.2f} ms, p99 {p99:.2f} ms",
            p50 <= 1.2 and p99 <= 5.0,
            "real head, tuner host and journal; the tuner's own time is in it (it returns at once)",
        )
    ]


def one_to_many(count: int) -> list[Row]:
    """Many children of one parent."""
    with _crowd(count) as one:
        one.finish(0)
        one.until(lambda: len(one.backend.started) == count + 1, "all started")
        ended = one.journal.ended[0]
        starts = sorted(t - ended for trial, t in one.backend.started.items() if trial)
    first, last = starts[0] * MS, starts[-1]
    return [
        row(
            f"{count:,} children blocked on one parent",
            "first let go ≤ 3 ms, last ≤ 0.3 s",
            f"first {first:.2f} ms, last {last:.3f} s",
            first <= 3.0 and last <= 0.3,
        )
    ]


def crowd(count: int) -> list[Row]:
    """Ten thousand on one, and what a running trial feels of it."""
    with _crowd(count) as one:
        host = psutil.Process(one.driver.pid)
        blocked_bytes = host.memory_info().rss
        with bench(Settings(slots=2, lookahead=8, max_trials=1), "Waiting", parents=1) as empty:
            empty.until(lambda: 0 in empty.backend.started, "the one trial")
            bare_bytes = psutil.Process(empty.driver.pid).memory_info().rss
        each = (blocked_bytes - bare_bytes) / count / 1024
        posted, stop = _stream_of_metrics(one)
        one.finish(0)
        one.until(lambda: len(one.backend.started) == count + 1, "all started", 120)
        stop.set()
        last = max(one.backend.started.values()) - one.journal.ended[0]
        waits = [one.journal.metrics[s] - t for s, t in posted.items() if s in one.journal.metrics]
    p99 = quantile(waits, 0.99) * MS
    return [
        row(
            f"{count:,} requests blocked on one parent: resident memory each",
            "≤ 32 KiB",
            f"{each:.1f} KiB",
            each <= 32,
        ),
        row(
            f"{count:,} requests blocked on one parent: all released and journalled",
            "≤ 2.5 s",
            f"{last:.2f} s",
            last <= 2.5,
        ),
        row(
            "meanwhile the head acknowledges a running trial's metrics",
            "p99 ≤ 25 ms",
            f"p99 {p99:.1f} ms ({len(waits)} metrics)",
            p99 <= 25.0,
        ),
    ]


def _stream_of_metrics(one: Bench) -> tuple[dict[int, float], threading.Event]:
    """A metric each 2 ms for a trial by hand that keeps running; (seq → when posted, stop)."""
    trial = one.engine.state.next_id
    one.engine.post(e.TrialSubmitted("{}"))
    one.until(lambda: trial in one.backend.started, "trial by hand")
    del one.backend.started[trial]
    one.engine.post(e.AttemptStarted(TrialId(trial), 1))
    posted: dict[int, float] = {}
    stop = threading.Event()

    def stream() -> None:
        seq = 0
        while not stop.wait(0.002):
            seq += 1
            posted[seq] = time.perf_counter()
            one.engine.post(e.MetricReported(TrialId(trial), 1, seq, "0.5"))

    threading.Thread(target=stream, daemon=True).start()
    time.sleep(0.1)
    return posted, stop


class _crowd:  # noqa: N801 - a context manager
    """One parent that runs, and ``count`` requests that wait for it."""

    def __init__(self, count: int) -> None:
        settings = Settings(slots=count + 3, lookahead=count + 1, max_trials=count + 1)
        self._count = count
        self._bench = bench(settings, "Waiting", parents=1)

    def __enter__(self) -> Bench:
        one = self._bench.__enter__()
        one.until(lambda: len(one.engine.state.blocked) == self._count, "children blocked", 120)
        return one

    def __exit__(self, *error: object) -> None:
        self._bench.__exit__(*error)  # type: ignore[arg-type]


if __name__ == "__main__":
    import sys

    for line in run(quick="--quick" in sys.argv):
        print(line["what"], "|", line["target"], "|", line["measured"], "|", line["ok"])
