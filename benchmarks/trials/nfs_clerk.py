"""What runs in a client for ``benchmarks/nfs.py``: orders with a clock beside them."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.system.nfs.store.clerk import Clerk, main
from trial_runtime import weights

LAYERS = 10
COUNTERS = Path("/sys/class/net/eth0/statistics")


def layers(nbytes: int, changed: int = 0) -> dict[str, Any]:
    """Random tensors of equal size; ``changed`` of them are unlike those without."""
    made = {}
    for number in range(LAYERS):
        generator = np.random.default_rng(number + (1000 if number < changed else 0))
        made[f"layer{number}"] = generator.random(nbytes // LAYERS // 8)
    return made


def forget(path: str) -> None:
    """Have this client read a file from the server again."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def files_below(path: str) -> list[str]:
    """Data files of weights, or the file itself."""
    if os.path.isfile(path):
        return [path]
    return [os.path.join(path, n) for n in os.listdir(path) if n.endswith(".safetensors")]


class TimedClerk(Clerk):
    """Takes turns between candidates, as a neighbour may change its mind at any time."""

    def nothing(self) -> None:
        """A round trip of the orders themselves."""

    def save_layers(self, root: str, path: str, nbytes: int, changed: int, **more: Any) -> Any:
        """Publish; what came of it, and the bytes this client sent for it."""
        made = layers(nbytes, changed)
        sent = self._counted("tx_bytes")
        done = weights.save(made, path, root=root, **more)
        return {"digest": done.digest, "sent": self._counted("tx_bytes") - sent}

    def load_layers(self, root: str, path: str, digest: str) -> Any:
        """Load, every digest checked; seconds, and the bytes this client received for it."""
        heard = self._counted("rx_bytes")
        begun = time.perf_counter()
        weights.load(path, root=root, digest=digest)
        seconds = time.perf_counter() - begun
        return {"s": seconds, "received": self._counted("rx_bytes") - heard}

    def saves(self, root: str, nbytes: int, repetitions: int) -> dict[str, float]:
        """Median seconds of ours and of dd with fsync, from memory to the same mount."""
        made = layers(nbytes)
        source = f"/dev/shm/source-{os.getpid()}"
        np.concatenate(list(made.values())).tofile(source)

        def dd(number: int) -> None:
            to = f"of={root}/dd-{number}"
            subprocess.run(
                ["dd", f"if={source}", to, "bs=1M", "conv=fsync", "status=none"], check=True
            )

        try:
            return _timed(
                {"dd": dd, "ours": lambda n: weights.save(made, f"{root}/ours-{n}", root=root)},
                repetitions,
            )
        finally:
            os.unlink(source)

    def loads(self, root: str, path: str, digest: str, plain: str, repetitions: int) -> Any:
        """Median seconds of ours and of dd, each from a server that has it in memory."""

        def dd(number: int) -> None:
            argv = ["dd", f"if={plain}", "of=/dev/null", "bs=1M", "status=none"]
            subprocess.run(argv, check=True)

        def cold() -> None:
            for file in (*files_below(path), plain):
                forget(file)

        return _timed(
            {"dd": dd, "ours": lambda n: weights.load(path, root=root, digest=digest)},
            repetitions,
            cold,
        )

    def read_whole(self, path: str) -> int:
        """Open a file and read all of it."""
        with open(path, "rb", buffering=0) as file:
            return sum(iter(lambda: len(file.read(1 << 20)), 0))

    def _counted(self, name: str) -> int:
        return int((COUNTERS / name).read_text())


def _timed(
    candidates: dict[str, Callable[[int], object]],
    repetitions: int,
    between: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    order = list(candidates)
    for number in range(repetitions + 1):
        for name in order:
            between()
            begun = time.perf_counter()
            candidates[name](number)
            taken[name].append(time.perf_counter() - begun)
        order.reverse()
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


if __name__ == "__main__":
    main(TimedClerk)
