"""From a parent's committed end to the start of its children: the gate's own time.

Times are divided by those of floors measured in turns with them (:mod:`benchmarks.floors`).
"""

from __future__ import annotations

import threading
import time

import psutil

from benchmarks import floors
from benchmarks.harness import Bench, bench
from benchmarks.rows import Row, median, quantile, row
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.settings import Settings

MS = 1000.0
PAUSE_S = 0.002  # between parents that end one at a time
METRICS_EVERY_S = 0.002

#: Times the floor. Chosen as benchmarks/README.md tells.
PAIR_P50, PAIR_P99 = 3.8, 4.2
FIRST, LAST = 4.0, 2.2
ALL_RELEASED, ACKNOWLEDGED = 3.5, 5.0


def run(*, quick: bool = False) -> list[Row]:
    """All rows; ``quick`` takes a tenth of the children."""
    share = 10 if quick else 1
    return [
        *one_to_one(1_000 // share),
        *one_to_many(1_000 // share, rounds=2 if quick else 5),
        *crowd(10_000 // share),
    ]


def one_to_one(count: int) -> list[Row]:
    """As many parents as children; parents end one at a time. The floor is measured before and
    after."""
    bare = floors.pairs_s(count // 2, PAUSE_S)
    latencies = _pairs_s(count)
    bare += floors.pairs_s(count // 2, PAUSE_S)
    p50, p99 = median(latencies) * MS, quantile(latencies, 0.99) * MS
    floor_p50, floor_p99 = median(bare) * MS, quantile(bare, 0.99) * MS
    return [
        row(
            f"parent's result committed → child's parameters sent, {count:,} pairs",
            f"p50 ≤ {PAIR_P50:g} × floor, p99 ≤ {PAIR_P99:g} ×",
            f"p50 {p50 / floor_p50:.2f} ×, p99 {p99 / floor_p99:.2f} ×",
            p50 <= PAIR_P50 * floor_p50 and p99 <= PAIR_P99 * floor_p99,
            f"p50 {p50:.2f} against {floor_p50:.2f} ms (aim: ≤ 1.2 ms), p99 {p99:.2f} against "
            f"{floor_p99:.2f} ms (aim: ≤ 5 ms); real head, tuner host and journal; the tuner's own "
            "time is in it (it returns at once)",
        )
    ]


def _pairs_s(count: int) -> list[float]:
    settings = Settings(slots=count + 1, lookahead=2 * count, max_trials=2 * count)
    with bench(settings, "Waiting", parents=count) as one:
        one.until(lambda: len(one.engine.state.blocked) == count, "children blocked")
        latencies = []
        for parent in range(count):
            one.finish(parent)
            child = count + parent
            one.until(lambda child=child: child in one.backend.started, "child started")
            latencies.append(one.backend.started[child] - one.journal.ended[parent])
            time.sleep(PAUSE_S)
    return latencies


def one_to_many(count: int, rounds: int) -> list[Row]:
    """Many children of one parent; medians of some rounds, in turns with the floor."""
    ours: list[tuple[float, float]] = []
    bare: list[floors.Crowd] = []
    for _ in range(rounds):
        bare.append(floors.crowd(count))
        ours.append(_first_and_last_s(count))
    first, last = (median(times) for times in zip(*ours, strict=True))
    floor_first = median([one.first_s for one in bare])
    floor_last = median([one.last_s for one in bare])
    what = f"{count:,} children blocked on one parent"
    detail = f"medians of {rounds} rounds in turns"
    return [
        row(
            f"{what}: the first is let go",
            f"≤ {FIRST:g} × floor",
            f"{first / floor_first:.2f} × ({first * MS:.2f} against {floor_first * MS:.2f} ms)",
            first <= FIRST * floor_first,
            f"aim: ≤ 3 ms; {detail}",
        ),
        row(
            f"{what}: the last is let go",
            f"≤ {LAST:g} × floor",
            f"{last / floor_last:.2f} × ({last:.3f} against {floor_last:.3f} s)",
            last <= LAST * floor_last,
            f"aim: ≤ 0.3 s; {detail}",
        ),
    ]


def _first_and_last_s(count: int) -> tuple[float, float]:
    with _crowd(count) as one:
        one.finish(0)
        one.until(lambda: len(one.backend.started) == count + 1, "all started")
        ended = one.journal.ended[0]
        starts = sorted(t - ended for trial, t in one.backend.started.items() if trial)
    return starts[0], starts[-1]


def crowd(count: int) -> list[Row]:
    """Ten thousand on one, and what a running trial feels of it. The floor is measured before
    and after."""
    floor = floors.crowd(count, METRICS_EVERY_S)
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
    other = floors.crowd(count, METRICS_EVERY_S)
    floor_last = (floor.last_s + other.last_s) / 2
    p99, floor_p99 = (
        quantile(some, 0.99) * MS for some in (waits, [*floor.waits_s, *other.waits_s])
    )
    what = f"{count:,} requests blocked on one parent"
    return [
        row(f"{what}: resident memory each", "≤ 32 KiB", f"{each:.1f} KiB", each <= 32),
        row(
            f"{what}: all released and journalled",
            f"≤ {ALL_RELEASED:g} × floor",
            f"{last / floor_last:.2f} × ({last:.2f} against {floor_last:.2f} s)",
            last <= ALL_RELEASED * floor_last,
            "aim: ≤ 2.5 s; floor: the mean of one before and one after",
        ),
        row(
            "meanwhile the head acknowledges a running trial's metrics",
            f"p99 ≤ {ACKNOWLEDGED:g} × floor",
            f"p99 {p99 / floor_p99:.2f} × ({p99:.1f} against {floor_p99:.1f} ms)",
            p99 <= ACKNOWLEDGED * floor_p99,
            f"aim: p99 ≤ 25 ms; {len(waits)} metrics",
        ),
    ]


def _stream_of_metrics(one: Bench) -> tuple[dict[int, float], threading.Event]:
    """A metric now and then for a trial by hand that keeps running; (seq → when posted, stop)."""
    trial = one.engine.state.next_id
    one.engine.post(e.TrialSubmitted("{}"))
    one.until(lambda: trial in one.backend.started, "trial by hand")
    del one.backend.started[trial]
    one.engine.post(e.AttemptStarted(TrialId(trial), 1))
    posted: dict[int, float] = {}
    stop = threading.Event()

    def stream() -> None:
        seq = 0
        while not stop.wait(METRICS_EVERY_S):
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
