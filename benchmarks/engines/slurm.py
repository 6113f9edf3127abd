"""Trials in warm jobs of a real Slurm cluster on this machine, beside a job for each.

The other side is the least that a launcher of one job a trial does, submitit's way without its
pickles: ``sbatch`` for each, all at once, and their results looked for in files. Nodes have one CPU
each, and two of them make two slots for either side.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.engines.lives import Engine, led_again_step, node_dies_step
from benchmarks.engines.steps import MANY_TARGET, REQUESTS_TARGET, WARM_TARGET, Step, taken
from benchmarks.engines.warm import beside_ssh, experiment, head
from benchmarks.rows import Row, row
from tests.support import sshd
from tests.support.processes import wait_until
from tests.support.slurm_cluster import SlurmCluster, why_not

SLOTS, TRIALS, WARM_TRIALS = 2, 200, 2_000
WAITING, WATCHED_S = 100, 60.0
AGAIN, LIVES = 50, 24

#: Requests of daemons of Slurm, and of who counts: not what a client asks for.
_OF_DAEMONS = re.compile(
    "REGISTRATION|PING|EPILOG|COMPLETE|STATS_INFO|PROLOG|STEP|RESPONSE|LAUNCH|CONFIG"
)
_COUNT = re.compile(r"^\s*((?:REQUEST|MESSAGE)_\w+)\s*\(\s*\d+\)\s*count:(\d+)", re.MULTILINE)

_ONE_TRIAL = """\
#!/bin/sh
exec {python} -c 'import json, os, sys
parameters = json.loads(sys.argv[1])
with open(sys.argv[2] + ".new", "w") as file: json.dump(1.0, file)
os.rename(sys.argv[2] + ".new", sys.argv[2])' '{{"x": {number}}}' {result}
"""


def run(*, quick: bool = False) -> Iterator[Row]:
    """The rows; blocks for six minutes. Needs root and ``make enable``."""
    if reason := why_not() or sshd.why_not():
        yield row("trials on Slurm", "", "not measured", None, reason)
        return
    again, seconds = AGAIN // 10 if quick else AGAIN, WATCHED_S / 4 if quick else WATCHED_S
    with tempfile.TemporaryDirectory(prefix="slurm-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        with SlurmCluster(folder / "c", nodes=SLOTS, cpus=1) as cluster:
            given, one = cluster.environment, service(allocations=1)
            yield from taken(
                [
                    Step(
                        "Slurm, against one sbatch a trial",
                        MANY_TARGET,
                        partial(beside_a_job_each, cluster, folder, quick),
                    ),
                    Step(
                        "Slurm, warm, against SSH",
                        WARM_TARGET,
                        partial(beside_ssh, "job of Slurm", one, folder, quick, given),
                    ),
                    Step("Slurm, requests", REQUESTS_TARGET, partial(questions, cluster, seconds)),
                ]
            )
        with SlurmCluster(folder / "d", nodes=2, cpus=again) as cluster:
            yield from taken([led_again_step(engine(cluster, folder), again)])
        with SlurmCluster(folder / "e", nodes=2, cpus=1) as cluster:
            yield from taken([node_dies_step(engine(cluster, folder), LIVES)])


def engine(cluster: SlurmCluster, folder: Path) -> Engine:
    """The cluster, for the questions that each engine gets."""

    def crash() -> None:
        (line,) = {*cluster.run("squeue", "--noheader", "--format=%N").split()[:1]}
        cluster.crash(line)

    return Engine("Slurm", service(), folder, cluster.environment, crash)


def beside_a_job_each(cluster: SlurmCluster, folder: Path, quick: bool) -> list[Row]:
    """Once warm on our side. Theirs is all of it, as each trial waits, starts and ends."""
    trials = TRIALS // 4 if quick else TRIALS
    each_s = a_job_each(cluster, folder / "results", trials)
    warm = experiment(
        WARM_TRIALS // 4 if quick else WARM_TRIALS,
        SLOTS,
        service(allocations=SLOTS),
        cluster.environment,
    )
    cold = experiment(trials, SLOTS, service(allocations=SLOTS), cluster.environment)
    ratio = each_s / trials / warm["trial_s"]
    rates = f"{1 / warm['trial_s']:.0f} against {trials / each_s:.1f} a second"
    whole = each_s / cold["whole_s"]
    return [
        row(
            f"empty trials in {SLOTS} warm jobs of Slurm, against one sbatch a trial",
            MANY_TARGET,
            f"{ratio:.3g} × ({rates})",
            ratio >= 20,
            f"{SLOTS} slots each; ours once the jobs run, {trials} of theirs from the first order "
            f"to the last result. From our head's start, its queue included, to the last of "
            f"{trials} results: {cold['whole_s']:.1f} s, {whole:.3g} ×",
        )
    ]


def a_job_each(cluster: SlurmCluster, results: Path, trials: int) -> float:
    """Seconds until all results of as many jobs are there."""
    results.mkdir()
    started = time.perf_counter()
    for number in range(trials):
        script = _ONE_TRIAL.format(
            python=sys.executable, number=number, result=results / str(number)
        )
        cluster.run("sbatch", "--parsable", "--output=/dev/null", stdin=script)
    wait_until(lambda: len(list(results.glob("*[0-9]"))) == trials, "all have ended", 600)
    return time.perf_counter() - started


def questions(cluster: SlurmCluster, seconds: float) -> list[Row]:
    """What the controller is asked while many jobs wait, by its own count."""
    taken = cluster.submit("--partition=high", f"--nodes={SLOTS}", "--exclusive")
    wait_until(lambda: cluster.state(taken) == "RUNNING", "somebody has the cluster")
    options = {"trials": 1, "concurrency": WAITING, "service": service(allocations=WAITING)}
    with head(options, cluster.environment) as process:
        wait_until(lambda: waiting(cluster) == WAITING, "all wait")
        time.sleep(40.0)  # until nothing is expected to change
        before = requests(cluster)
        time.sleep(seconds)
        after = requests(cluster)
        assert process.poll() is None, "its head runs"
    cluster.run("scancel", f"--user={os.geteuid()}")
    wait_until(lambda: not cluster.run("squeue", "--noheader"), "none is left")
    asked = {kind: count - before.get(kind, 0) for kind, count in after.items()}
    asked = {kind: count for kind, count in asked.items() if count}
    rate = sum(asked.values()) / seconds
    return [
        row(
            f"requests to Slurm's controller while {WAITING} jobs wait, steady",
            REQUESTS_TARGET,
            f"{rate:.2f} a second",
            rate <= 1,
            f"counted by sdiag over {seconds:.0f} s: {asked}",
        )
    ]


def waiting(cluster: SlurmCluster) -> int:
    """How many jobs wait, each task of an array for itself."""
    return len(cluster.run("squeue", "--noheader", "--array", "--states=PD").splitlines())


def requests(cluster: SlurmCluster) -> dict[str, int]:
    """How many requests of clients the controller has served, by kind."""
    counts = {kind: int(count) for kind, count in _COUNT.findall(cluster.run("sdiag"))}
    return {kind: count for kind, count in counts.items() if not _OF_DAEMONS.search(kind)}


def service(**keys: Any) -> dict[str, Any]:
    """A service of jobs with one CPU, one trial at a time in each."""
    section = {"platform": "slurm", "partition": "low", "cpus": 1, "wallTime": "1h", "slots": 1}
    here = {"headAddress": "127.0.0.1", "probe": False}
    return {**section, **here, "reuseMode": "inProcess", **keys}
