"""Ray Tune: empty trials, two at once, as a function or with ``reuse_actors=True``, which may
have its loggers off.

Counted: the time between the ends of trials, as Ray Tune's callback tells them, from after
the warm-up to the last: Ray's start, its daemons and the first worker processes are not in
the figure. Results are kept in files as Ray does it unasked (its default loggers), as ours
are in the journal. What the same costs with all of Ray's loggers off, so that no result is
kept, is measured for ``reuse_actors`` and told beside the figure. In its favour: nothing is
printed, no trial makes a checkpoint, and the class resets itself at no cost.

Ray listens on the machine's addresses. As root on Linux it therefore runs in a network
namespace of its own, in which there is nothing but loopback; elsewhere it is told to use
loopback. No usage statistics are sent.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steady import say, steady

CONCURRENT = 2
STORE_BYTES = 100 * 2**20  # empty trials exchange nothing large
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
}


def leave_the_network() -> bool:
    """Enter a network namespace with loopback only; False where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform != "linux" or libc.unshare(CLONE_NEWNET) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", IFF_UP)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)
    return True


@contextmanager
def cluster(folder: Path, address: str = "") -> Iterator[None]:
    """Ray on this machine, with a slot for each trial at once; or the cluster at an address."""
    import ray

    if address:
        ray.init(address, log_to_driver=False)
        yield
        ray.shutdown()
        return
    ray.init(
        num_cpus=CONCURRENT,
        num_gpus=0,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=STORE_BYTES,
        _node_ip_address="127.0.0.1",
        _temp_dir=str(folder / "ray"),
    )
    try:
        yield
    finally:
        ray.shutdown()


def ends_of(kind: str, trials: int, results: Path) -> tuple[list[float], list[float]]:
    """Run them and return when each was over, and this process's CPU seconds then."""
    from ray import tune

    class Clock(tune.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.ends: list[float] = []
            self.cpu: list[float] = []  # of this process, all its threads

        def on_trial_complete(self, *args: object, **kwargs: object) -> None:
            self.ends.append(time.perf_counter())
            self.cpu.append(time.process_time())

    class Empty(tune.Trainable):  # type: ignore[misc]
        def step(self) -> dict[str, Any]:
            return {"loss": 1.0, "done": True}

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            return True

    def function(config: dict[str, Any]) -> dict[str, Any]:
        return {"loss": 1.0}

    clock = Clock()
    tune.Tuner(
        function if kind == "function" else Empty,
        param_space={"x": tune.uniform(0.0, 1.0)},
        tune_config=tune.TuneConfig(
            num_samples=trials,
            max_concurrent_trials=CONCURRENT,
            reuse_actors=kind != "function",
        ),
        run_config=tune.RunConfig(
            storage_path=str(results),
            callbacks=[clock],
            verbose=0,
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
        ),
    ).fit()
    return clock.ends, clock.cpu


def calls_of(count: int) -> tuple[list[float], list[float]]:
    """Call an empty method of actors, one call of each at a time: Ray without any tuner."""
    import ray

    class Empty:
        def nothing(self) -> None:
            return

    actors = [ray.remote(num_cpus=1)(Empty).remote() for _ in range(CONCURRENT)]
    asked = {actor.nothing.remote(): actor for actor in actors}
    ends: list[float] = []
    cpu: list[float] = []
    while len(ends) < count:
        done, _ = ray.wait(list(asked), num_returns=1)
        for ref in done:
            ray.get(ref)
            ends.append(time.perf_counter())
            cpu.append(time.process_time())
            actor = asked.pop(ref)
            asked[actor.nothing.remote()] = actor
    return ends, cpu


NAMES = {
    "function": "Ray Tune, function trainable",
    "reuse": "Ray Tune, reuse_actors",
    "unlogged": "Ray Tune, reuse_actors, its loggers off",
    "calls": "Ray, an empty method of actors",
}


def rate(kind: str, trials: int, results: Path) -> dict[str, Any]:
    """One run of the tuner: its rate, and the CPU of this process (ms a trial, once warm)."""
    ends, cpu = calls_of(trials) if kind == "calls" else ends_of(kind, trials, results)
    result = steady(NAMES[kind], "ray", ends, workers=CONCURRENT)
    return {**result, "cpu_ms": 1000 * (cpu[-1] - cpu[-1 - result["trials"]]) / result["trials"]}


def main() -> None:
    """``ray_tune.py function|reuse|unlogged|calls TRIALS [ADDRESS]``."""
    kind, trials, address = sys.argv[1], int(sys.argv[2]), "".join(sys.argv[3:])
    if address:
        detail = f"on the cluster at {address}"
    else:
        detail = "in a network namespace" if leave_the_network() else "bound to loopback"
    os.environ.update(SETTINGS)
    folder = Path.cwd()
    if kind == "unlogged":
        os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    with cluster(folder, address):
        result = rate(kind, trials, folder / "results")
    say({**result, "detail": detail})


if __name__ == "__main__":
    main()
