"""Experiments with empty trials on allocations that are there, and the same over SSH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.engines.steps import WARM_TARGET
from benchmarks.rows import Row, median, row
from tests.support import sshd

TRIALS, ROUNDS = 1_000, 5


def experiment(
    trials: int,
    concurrency: int,
    where: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    base: Path | None = None,
) -> dict[str, Any]:
    """Run one in a process of its own; its times.

    Args:
        trials: how many.
        concurrency: how many at once.
        where: the service.
        environment: of the head, beside ours.
        base: a folder for it; None: any.
    """
    options = {"trials": trials, "concurrency": concurrency, "service": where}
    with head(options, environment, base) as process:
        out, _ = process.communicate(timeout=600)
    assert process.returncode == 0, "the experiment has failed"
    result: dict[str, Any] = json.loads(out)
    return result


@contextmanager
def head(
    options: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    base: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A head, killed at the end if it has not ended."""
    told = {**options, **({} if base is None else {"base": str(base)})}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.engines.trials_on", json.dumps(told)],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def beside_ssh(
    what: str,
    where: Mapping[str, Any],
    folder: Path,
    quick: bool,
    environment: Mapping[str, str] | None = None,
    base: Path | None = None,
) -> list[Row]:
    """One at a time, in turns, where the agent is there and warm.

    Args:
        what: where the trials run, for people.
        where: the service, of one allocation.
        folder: for the server.
        quick: few of them.
        environment: of the head, beside ours.
        base: a folder for the experiment; None: any.
    """
    name = f"a trial in a warm {what}, against the same over SSH to this machine"
    if reason := sshd.why_not():
        return [row(name, WARM_TARGET, "not measured", None, reason)]
    trials, rounds = (TRIALS // 2, 2) if quick else (TRIALS, ROUNDS)
    ours, ssh = [], []
    with sshd.running(folder / "sshd") as server:
        machine = {
            "host": "127.0.0.1",
            "port": server.port,
            "keyFile": str(server.folder / "client_key"),
            "knownHosts": str(server.folder / "known_hosts"),
            "python": sys.executable,
            "workFolder": str(folder / "work"),
        }
        there = {"platform": "ssh", "machineList": [machine], "reuseMode": "inProcess"}
        for _ in range(rounds):
            ours.append(experiment(trials, 1, where, environment, base))
            ssh.append(experiment(trials, 1, there))
    ratios = [one["trial_s"] / other["trial_s"] for one, other in zip(ours, ssh, strict=True)]
    times, cpu = (
        [1000 * median([one[key] for one in side]) for side in (ours, ssh)]
        for key in ("trial_s", "head_cpu_s")
    )
    return [
        row(
            name,
            WARM_TARGET,
            f"{median(ratios):.2f} × ({times[0]:.2f} against {times[1]:.2f} ms)",
            median(ratios) <= 1.1,
            f"in-process, one at a time, {trials} trials; the median ratio of {rounds} pairs in "
            f"turns ({min(ratios):.2f} to {max(ratios):.2f}); CPU of the heads, a trial: "
            f"{cpu[0]:.2f} against {cpu[1]:.2f} ms",
        )
    ]
