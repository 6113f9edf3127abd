"""Trials in warm actors of a real Ray cluster on this machine, beside Ray Tune on the same one.

Ray Tune keeps its actors, too (``reuse_actors``). The cluster has a node with two CPUs: two slots
for either side. All of it is in a network namespace with nothing but the loopback, and so in a
process of its own: ``python -m benchmarks.engines.ray TRIALS ROUNDS``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.engines.lives import Engine, led_again, node_dies
from benchmarks.engines.trials_on import FIRST
from benchmarks.engines.warm import beside_ssh, experiment, head
from benchmarks.environments import EnvironmentFailed, python_of
from benchmarks.peer_runs import PeerFailed, answer
from benchmarks.rows import Row, median, row
from tests.support.processes import wait_until
from tests.support.ray_cluster import RayCluster, alone, why_not

SLOTS, TRIALS, ROUNDS = 2, 1_000, 3
WAITING = 100
AGAIN, LIVES = 50, 24
LIMIT_S = 1_500.0

#: What Ray's head has served, by kind, as it writes into its log once a minute.
_COUNT = re.compile(r"- (\w+) request count: (\d+)")
DUMP_S = 60.0

#: Requests of a driver that Ray's head does not count: what an autoscaler says, and its errors, by
#: two requests, and the connection for them (a second).
UNCOUNTED = 3 / 15.0


def run(*, quick: bool = False) -> list[Row]:
    """The rows; blocks for some minutes. Needs root and ``make enable``."""
    if reason := why_not():
        return [row("trials on Ray", "", "not measured", None, reason)]
    arguments = [str(TRIALS // 10), "1"] if quick else [str(TRIALS), str(ROUNDS)]
    try:
        python_of("ray")  # installed outside of the namespace, from which nothing gets out
    except EnvironmentFailed as error:
        return [row("trials on Ray", "", "not measured", None, str(error))]
    done = subprocess.run(
        alone([sys.executable, "-m", "benchmarks.engines.ray", *arguments]),
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
    return rows


def beside_tune(cluster: RayCluster, trials: int, rounds: int) -> list[Row]:
    """In turns: what either reaches once its actors are there."""
    ours, whole, tune, unlogged = [], [], [], []
    try:
        for _ in range(rounds):
            result = experiment(trials, SLOTS, service(cluster, allocations=SLOTS))
            ours.append(1 / result["trial_s"])
            whole.append(result["whole_s"])
            tune.append(tuned(cluster, "reuse", trials))
            unlogged.append(tuned(cluster, "unlogged", trials))
    except PeerFailed as error:
        return [row("trials on Ray, against Ray Tune", "", "not measured", None, str(error))]
    rows = []
    for name, peer, times in (
        ("Ray Tune with reuse_actors", tune, 10),
        ("the same, its loggers off, so that it keeps no result", unlogged, None),
    ):
        ratio = median(ours) / median(peer)
        rows.append(
            row(
                f"{trials} empty trials in-process on {SLOTS} warm actors, against {name}",
                f"≥ {times} ×" if times else "",
                f"{ratio:.3g} × ({median(ours):.0f} against {median(peer):.1f} a second)",
                None if times is None else ratio >= times,
                f"on one cluster, {SLOTS} slots each, medians of {rounds} rounds in turns, once "
                f"warm (ours from trial {FIRST} on, theirs from a tenth on); all of ours, with the "
                f"starts of head and actors: {median(whole):.1f} s",
            )
        )
    return rows


def tuned(cluster: RayCluster, kind: str, trials: int) -> float:
    """Trials a second of Ray Tune."""
    last = answer("ray", "ray_tune.py", [kind, str(trials), cluster.address], 300)
    return float(last["per_second"])


def questions(cluster: RayCluster) -> list[Row]:
    """What Ray's head is asked while many actors wait, by its own count."""
    many = service(cluster, allocations=WAITING, actorResources={"nowhere": 1})
    options = {"trials": 1, "concurrency": WAITING, "service": many}
    with head(options) as process:
        time.sleep(DUMP_S)  # until all wait, and nothing is expected to change
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
            "≤ 1 a second",
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


def main() -> None:
    """``TRIALS ROUNDS``: measure, and print the rows as JSON."""
    trials, rounds = int(sys.argv[1]), int(sys.argv[2])
    nodes = {"n1": {"CPU": float(SLOTS)}}
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        quick = rounds == 1
        with RayCluster(folder / "c", nodes, python_of("ray")) as cluster:
            rows = beside_tune(cluster, trials, rounds)
            time.sleep(1.0)  # the last of their processes end
            rows += beside_ssh("actor of Ray", service(cluster, allocations=1), folder, quick)
            rows += questions(cluster)
            few = Engine("Ray", service(cluster, cpus=0.02), folder)
            rows += led_again(few, AGAIN // 10 if quick else AGAIN)
        two = {"n1": {"CPU": 1.0}, "n2": {"CPU": 1.0}}
        with RayCluster(folder / "d", two, python_of("ray")) as cluster:
            crash = partial(_crash, cluster)
            rows += node_dies(Engine("Ray", service(cluster), folder, crash=crash), LIVES)
    print(json.dumps(rows))


def _crash(cluster: RayCluster) -> None:
    cluster.crash(cluster.nodes_with_agents()[0])


if __name__ == "__main__":
    main()
