"""Trials in warm Jobs of a real Kubernetes on this machine, beside a Job for each.

The other side is the least that a launcher of one Job a trial does, Katib's way without its
sidecars: each is created by one request, all at once, and their results looked for in files. The
control plane is real, containers are processes; two nodes with one CPU make two slots for either
side.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.engines.lives import Engine, led_again_step, node_dies_step
from benchmarks.engines.spaces import IN_MEMORY
from benchmarks.engines.steps import MANY_TARGET, REQUESTS_TARGET, WARM_TARGET, Step, taken
from benchmarks.engines.warm import beside_ssh, experiment, head
from benchmarks.rows import Row, row
from tests.support.kubernetes.real import RealCluster, real_cluster, why_not
from tests.support.processes import wait_until

SLOTS, TRIALS, WARM_TRIALS = 2, 200, 2_000
WAITING, WATCHED_S = 100, 60.0
AGAIN, LIVES = 50, 24
SETTLE_S = 40.0
NODES = ("n1", "n2")

#: A trial with a Job of its own: it writes its result as ours do at the least.
_ONE_TRIAL = """
import json, os, sys
parameters = json.loads(sys.argv[1])
with open(sys.argv[2] + ".new", "w") as file: json.dump(1.0, file)
os.rename(sys.argv[2] + ".new", sys.argv[2])
"""


def run(*, quick: bool = False) -> Iterator[Row]:
    """The rows; blocks for ten minutes. Needs root and ``make enable``."""
    if reason := why_not():
        yield row("trials on Kubernetes", "", "not measured", None, reason)
        return
    again, seconds = AGAIN // 10 if quick else AGAIN, WATCHED_S / 4 if quick else WATCHED_S
    memory = os.environ.get(IN_MEMORY, "/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory, prefix="kube-") as made:
        folder, shared = Path(made), Path(made, "shared")
        shared.mkdir()
        with real_cluster(folder / "c", nodes=NODES, cpus=1) as cluster:
            one = service(cluster, shared, allocations=1)
            ssh = partial(beside_ssh, "Job of Kubernetes", one, folder, quick, base=shared)
            little = service(cluster, shared, requests={"cpu": "10m"})
            crash = partial(_crash, cluster)
            dies = Engine("Kubernetes", service(cluster, shared), shared, crash=crash)
            steps = [
                Step(
                    "Kubernetes, against one Job a trial",
                    MANY_TARGET,
                    partial(beside_a_job_each, cluster, shared, quick),
                ),
                Step("Kubernetes, warm, against SSH", WARM_TARGET, ssh),
                Step(
                    "Kubernetes, requests",
                    REQUESTS_TARGET,
                    partial(questions, cluster, shared, seconds),
                ),
                led_again_step(Engine("Kubernetes", little, shared), again),
                node_dies_step(dies, LIVES),
            ]
            for step in steps:
                yield from taken([step])
                cluster.delete_all()


def beside_a_job_each(cluster: RealCluster, shared: Path, quick: bool) -> list[Row]:
    """Once warm on our side. Theirs is all of it, as each trial waits, starts and ends."""
    trials = TRIALS // 10 if quick else TRIALS
    each_s = a_job_each(cluster, shared, trials)
    cluster.delete_all()
    two = service(cluster, shared, allocations=SLOTS)
    warm = experiment(WARM_TRIALS // 10 if quick else WARM_TRIALS, SLOTS, two, base=shared)
    cold = experiment(trials, SLOTS, two, base=shared)
    ratio = each_s / trials / warm["trial_s"]
    rates = f"{1 / warm['trial_s']:.0f} against {trials / each_s:.1f} a second"
    whole = each_s / cold["whole_s"]
    return [
        row(
            f"empty trials in {SLOTS} warm Jobs of Kubernetes, against one Job a trial",
            MANY_TARGET,
            f"{ratio:.3g} × ({rates})",
            ratio >= 20,
            f"{SLOTS} slots each; ours once the Jobs run, {trials} of theirs from the first order "
            f"to the last result. From our head's start, its queue included, to the last of "
            f"{trials} results: {cold['whole_s']:.1f} s, {whole:.3g} ×",
        )
    ]


def a_job_each(cluster: RealCluster, shared: Path, trials: int) -> float:
    """Seconds until all results of as many Jobs are there."""
    results = shared / "results"
    results.mkdir()
    started = time.perf_counter()
    for number in range(trials):
        cluster.create("jobs", _job(number, results / str(number), shared))
    wait_until(lambda: len(list(results.glob("*[0-9]"))) == trials, "all have ended", 900)
    return time.perf_counter() - started


def _job(number: int, result: Path, shared: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", _ONE_TRIAL, f'{{"x": {number}}}', str(result)]
    container = {
        "name": "trial",
        "image": "python:3",
        "command": command,
        "resources": {"requests": {"cpu": "900m"}},
        "volumeMounts": [{"name": "shared", "mountPath": str(shared)}],
    }
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "shared", "hostPath": {"path": str(shared)}}],
    }
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"trial-{number}"}}
    return {**body, "spec": {"backoffLimit": 0, "template": {"spec": spec}}}


def questions(cluster: RealCluster, shared: Path, seconds: float) -> list[Row]:
    """What the API server is asked while many Jobs wait, as our client counts it."""
    many = service(cluster, shared, allocations=WAITING, requests={"cpu": "64"})
    asked = shared / "asked"
    options = {"trials": 1, "concurrency": WAITING, "service": many, "asked": str(asked)}
    with head(options, base=shared) as process:
        wait_until(lambda: len(cluster.all("pods")) == WAITING, "all wait", 300)
        time.sleep(SETTLE_S)  # until nothing is expected to change
        before = len(asked.read_text().splitlines())
        assert before >= WAITING, "requests are counted"
        time.sleep(seconds)
        lines = asked.read_text().splitlines()[before:]
        assert process.poll() is None, "its head runs"
    cluster.delete_all()
    rate = len(lines) / seconds
    kinds = {line: lines.count(line) for line in sorted(set(lines))}
    return [
        row(
            f"requests to the API server while {WAITING} Jobs wait, steady",
            REQUESTS_TARGET,
            f"{rate:.2f} a second",
            rate <= 1,
            f"that our client sends, over {seconds:.0f} s, beside two watches: {kinds}",
        )
    ]


def service(cluster: RealCluster, shared: Path, **keys: Any) -> Mapping[str, Any]:
    """A service of Jobs with one CPU, one trial at a time in each."""
    return {
        "platform": "kubernetes",
        "kubeconfig": cluster.kubeconfig(),
        "image": "python:3",
        "python": sys.executable,
        "requests": {"cpu": "900m"},
        "volumes": [{"hostPath": str(shared), "at": str(shared)}],
        "pod": {"hostPID": True},
        "headAddress": "127.0.0.1",
        "probe": False,
        "slots": 1,
        "reuseMode": "inProcess",
        **keys,
    }


def _crash(cluster: RealCluster) -> None:
    cluster.kubelet("crash", cluster.running()[0]["spec"]["nodeName"])
