"""Trials in warm actors of a real Ray cluster on this machine, beside Ray Tune on the same one.

Ray Tune keeps its actors, too (``reuse_actors``). The cluster has a node with two CPUs: two slots
for either side. All of it is in a network namespace with nothing but the loopback.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.engines.lives import Engine, led_again_step, node_dies_step
from benchmarks.engines.steps import REQUESTS_TARGET, WARM_TARGET, Step, taken
from benchmarks.engines.warm import beside_ssh, experiment, head
from benchmarks.environments import python_of
from benchmarks.peer_runs import answer
from benchmarks.rows import Row, median, row
from tests.support.processes import wait_until
from tests.support.ray_cluster import RayCluster, why_not

SLOTS, TRIALS, ROUNDS = 2, 1_000, 3
WAITING = 100
AGAIN, LIVES = 50, 24
TUNE_TARGET = "≥ 10 ×"

#: Nothing is expected to change so long after the last order (seconds).
SETTLE_S = 40.0

#: What Ray's head has served, by kind, as it writes into its log once a minute.
_COUNT = re.compile(r"- (\w+) request count: (\d+)")
DUMP_S = 60.0

#: Requests of a driver that Ray's head does not count: what an autoscaler says, and its errors, by
#: two requests, and the connection for them (a second).
UNCOUNTED = 3 / 15.0


def run(*, quick: bool = False) -> Iterator[Row]:
    """The rows; blocks for some minutes, in a network with nothing but the loopback. Needs root and
    ``make enable``."""
    if reason := why_not():
        yield row("trials on Ray", TUNE_TARGET, "not measured", None, reason)
        return
    rounds, again = (1, AGAIN // 10) if quick else (ROUNDS, AGAIN)
    trials = TRIALS // 2 if quick else TRIALS
    with tempfile.TemporaryDirectory(prefix="ray-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        one = {"n1": {"CPU": float(SLOTS)}}
        with RayCluster(folder / "c", one, python_of("ray")) as cluster:
            few = Engine("Ray", service(cluster, cpus=0.02), folder)
            warm = partial(
                beside_ssh, "actor of Ray", service(cluster, allocations=1), folder, quick
            )
            yield from taken(
                [
                    Step("Ray, warm, against SSH", WARM_TARGET, warm),
                    Step(
                        "Ray, against Ray Tune",
                        TUNE_TARGET,
                        partial(beside_tune, cluster, trials, rounds),
                    ),
                    Step("Ray, requests", REQUESTS_TARGET, partial(questions, cluster)),
                    led_again_step(few, again),
                ]
            )
        two = {"n1": {"CPU": 1.0}, "n2": {"CPU": 1.0}}
        with RayCluster(folder / "d", two, python_of("ray")) as cluster:
            dies = Engine("Ray", service(cluster), folder, crash=partial(_crash, cluster))
            yield from taken([node_dies_step(dies, LIVES)])


def beside_tune(cluster: RayCluster, trials: int, rounds: int) -> list[Row]:
    """In turns, ours before and after each of theirs: the machine may be shared, and theirs take
    ten times as long."""
    ours = [_ours(cluster, trials)]
    tune, unlogged, calls = [], [], []
    for _ in range(rounds):
        tune.append(tuned(cluster, "reuse", trials))
        ours.append(_ours(cluster, trials))
        unlogged.append(tuned(cluster, "unlogged", trials))
        ours.append(_ours(cluster, trials))
        calls.append(tuned(cluster, "calls", trials * 10))
    rates = [1 / one["trial_s"] for one in ours]
    cpu_ms = 1000 * median([one["head_cpu_s"] for one in ours])
    whole_s = median([one["whole_s"] for one in ours])
    rows = []
    for name, peers, first, times in (
        ("Ray Tune with reuse_actors", tune, 0, 10),
        ("the same, its loggers off, so that it keeps no result", unlogged, 1, None),
    ):
        beside = [(rates[first + 2 * i] + rates[first + 2 * i + 1]) / 2 for i in range(rounds)]
        ratios = [own / peer["per_second"] for own, peer in zip(beside, peers, strict=True)]
        per_second = median([peer["per_second"] for peer in peers])
        their_cpu_ms = median([peer["cpu_ms"] for peer in peers])
        floor = median([each["per_second"] for each in calls])
        rows.append(
            row(
                f"{trials} empty trials in-process on {SLOTS} warm actors, against {name}",
                TUNE_TARGET if times else "",
                f"{median(ratios):.3g} × ({median(beside):.0f} against {per_second:.1f} a second)",
                None if times is None else median(ratios) >= times,
                f"on one cluster, {SLOTS} slots each, ours before and after each of theirs; the "
                f"median ratio of {rounds} rounds ({min(ratios):.3g} to {max(ratios):.3g}), once "
                f"warm. CPU of head and of Tune's process, a trial: {cpu_ms:.2f} against "
                f"{their_cpu_ms:.2f} ms. Empty method of {SLOTS} actors, one call each at a time, "
                f"no tuner: {floor:.0f} a second. All of ours, with the starts of head and actors: "
                f"{whole_s:.1f} s",
            )
        )
    return rows


def _ours(cluster: RayCluster, trials: int) -> dict[str, Any]:
    return experiment(trials, SLOTS, service(cluster, allocations=SLOTS))


def tuned(cluster: RayCluster, kind: str, trials: int) -> dict[str, Any]:
    """What Ray Tune reaches: trials a second, and CPU of its process (ms a trial)."""
    last: dict[str, Any] = answer("ray", "ray_tune.py", [kind, str(trials), cluster.address], 300)
    return last


def questions(cluster: RayCluster) -> list[Row]:
    """What Ray's head is asked while many actors wait, by its own count."""
    many = service(cluster, allocations=WAITING, actorResources={"nowhere": 1})
    options = {"trials": 1, "concurrency": WAITING, "service": many}
    with head(options) as process:
        time.sleep(SETTLE_S)  # until all wait, and nothing is expected to change
        seen = len(dumps(cluster))
        wait_until(lambda: len(dumps(cluster)) >= seen + 2, "it has counted", 4 * DUMP_S)
        assert process.poll() is None, "its head runs"
        before, after = dumps(cluster)[-2:]
    asked = {kind: after[kind] - before.get(kind, 0) for kind in after}
    asked = {kind: count for kind, count in asked.items() if count}
    rate = sum(asked.values()) / DUMP_S + UNCOUNTED
    return [
        row(
            f"requests to Ray's head while {WAITING} actors wait, steady",
            REQUESTS_TARGET,
            f"{rate:.2f} a second",
            rate <= 1,
            f"by its own count of {DUMP_S:.0f} s, of all processes of the cluster: {asked}; and "
            f"{UNCOUNTED:.2f} a second that it does not count",
        )
    ]


def dumps(cluster: RayCluster) -> list[dict[str, int]]:
    """How many requests of each kind Ray's head had served, each time that it has written it."""
    text = (cluster.folder / "session_latest/logs/gcs_server.out").read_text(errors="replace")
    parts = re.split(r"(?=- RegisterNode request count)", text)[1:]
    return [{kind: int(count) for kind, count in _COUNT.findall(part)} for part in parts]


def service(cluster: RayCluster, **keys: Any) -> dict[str, Any]:
    """A service of actors with one CPU, one trial at a time in each."""
    section = {"platform": "ray", "address": cluster.address, "cpus": 1, "slots": 1, "probe": False}
    pythons = {"python": str(cluster.python), "trialPython": sys.executable}
    return {**section, **pythons, "reuseMode": "inProcess", **keys}


def _crash(cluster: RayCluster) -> None:
    cluster.crash(cluster.nodes_with_agents()[0])
