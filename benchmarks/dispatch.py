"""Empty trials: how long one takes, beside floors and peers of the same run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from benchmarks.peer_runs import PeerResult, measure
from benchmarks.rows import Row, median, row

FLOOR = "import zmq, msgspec"
MS = 1000.0


def run(*, quick: bool = False) -> list[Row]:
    """All rows; ``quick`` runs fewer trials."""
    few = 4 if quick else 1
    return [
        *fresh_alone(rounds=3 if quick else 6),
        *fresh_two(60 // few, quick=quick),
        *forked(400 // few, quick=quick),
        *in_process(3_000 // few, quick=quick),
    ]


def experiment(**options: Any) -> dict[str, Any]:
    """Run one in a process of its own; its samples by number of trials."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.run_experiment", json.dumps(options)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    result["samples"] = {int(n): sample for n, sample in result["samples"].items()}
    return result


def per_second(result: dict[str, Any]) -> float:
    """Trials a second between the first and the last mark."""
    marks = sorted(result["samples"])
    first, last = marks[0], marks[-1]
    start, end = result["samples"][first], result["samples"][last]
    return float((end["over"] - start["over"]) / (end["wall"] - start["wall"]))


def floor_s() -> float:
    """One floor: what every fresh process pays before it can say hello."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", FLOOR], check=True)
    return time.perf_counter() - started


def fresh_alone(rounds: int) -> list[Row]:
    """Floor and trials in turn, one at a time."""
    floors: list[float] = []
    trials: list[float] = []
    for _ in range(rounds):
        floors.extend(floor_s() for _ in range(8))
        result = experiment(trials=10, concurrency=1, marks=[1, 10])
        trials.append(1 / per_second(result))
    floors.extend(floor_s() for _ in range(8))
    floor, trial = median(floors), median(trials)
    return [
        row(
            "empty trial, fresh process, wall time at concurrency 1",
            "≤ 1.25 × floor",
            f"{trial / floor:.2f} × ({trial * MS:.1f} against {floor * MS:.1f} ms)",
            trial <= 1.25 * floor,
            f"floor: python -c '{FLOOR}'; {rounds} rounds in turn",
        )
    ]


def floors_two(count: int) -> float:
    """Floors a second, two at a time."""
    started = time.perf_counter()
    running: list[subprocess.Popen[bytes]] = []
    for _ in range(count):
        if len(running) == 2:
            running.pop(0).wait()
        running.append(subprocess.Popen([sys.executable, "-c", FLOOR]))
    for process in running:
        process.wait()
    return count / (time.perf_counter() - started)


def fresh_two(count: int, *, quick: bool) -> list[Row]:
    """Two at once."""
    peer = measure("syne_tune_local", quick=quick)
    floor = floors_two(count)
    ours = per_second(experiment(trials=count, concurrency=2, marks=[1, count]))
    floor = (floor + floors_two(count)) / 2
    return [
        against("empty trials a second, fresh processes, concurrency 2", ours, peer, 4),
        row(
            "… against two floors in parallel",
            "≥ 0.7 ×",
            f"{ours / floor:.2f} × ({ours:.1f} against {floor:.1f} a second)",
            ours >= 0.7 * floor,
        ),
    ]


def forked(count: int, *, quick: bool) -> list[Row]:
    """Forked from a server that has imported the heavy modules; the median of three runs.

    The trial's own module is preloaded, too: Ray's actors, which are kept, have it as well.
    """
    reuse, function, unlogged = (
        measure(f"ray_tune_{kind}", quick=quick) for kind in ("reuse", "function", "unlogged")
    )
    rows = []
    for module, by_reuse, by_function in (("torch", 5, 150), ("numpy", 7, 200)):
        results = runs(
            trials=count,
            concurrency=2,
            reuse="forked",
            preload=[module, "empty"],
            marks=[20, count],
        )
        ours = median([per_second(result) for result in results])
        what = f"empty trials a second, forked workers, {module} preloaded"
        rows.append(against(what, ours, reuse, by_reuse))
        rows.append(against(what, ours, function, by_function))
        if module == "torch":
            rows.append(against(what, ours, unlogged, 1.5))
    return rows


def in_process(count: int, *, quick: bool) -> list[Row]:
    """Functions one after another inside a worker."""
    results = runs(trials=count, concurrency=2, reuse="inProcess", marks=[100, count])
    ours = median([per_second(result) for result in results])
    what = "empty trials a second, in-process workers, concurrency 2"
    return [
        against(what, ours, measure("ray_tune_reuse", quick=quick), 30),
        against(what, ours, measure("ray_tune_unlogged", quick=quick), 10),
        against(what, ours, measure("optuna_sqlite", quick=quick), 10),
        against(what, ours, measure("neps_folder", quick=quick), 12),
    ]


def against(what: str, ours: float, peer: PeerResult, times: float) -> Row:
    """A row that compares with a peer."""
    target = f"≥ {times:g} × {peer.peer}"
    if peer.per_second is None:
        return row(what, target, f"{ours:.1f} a second", None, f"peer not measured: {peer.reason}")
    ratio = ours / peer.per_second
    measured = f"{ratio:.3g} × ({ours:.1f} against {peer.per_second:.2f} a second)"
    return row(what, target, measured, ratio >= times, str(peer))


def runs(**options: Any) -> list[dict[str, Any]]:
    """The same experiment three times."""
    return [experiment(**options) for _ in range(3)]
