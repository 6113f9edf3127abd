"""What runs in a client for these tests: does on the share what it is told over TCP.

A line of JSON comes in, a line goes out. So digests travel as in an experiment: from the
writer to whoever coordinates, and on to the reader, beside the share.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dispatcher.weight_keeper import Keep, Policy, WeightKeeper
from dispatcher.weight_keeper.leftovers import LeftoverSweep
from tests.unit.weight_keeper.memory_ledger import LedgerRow, MemoryLedger
from trial_runtime import weights
from trial_runtime.errors import TrialRuntimeError
from trial_runtime.weights.read.plain import published_digest, verify_tree
from trial_runtime.weights.storage.patience import revalidate

PORT = 7911

#: Of a state, what every generation has in common with its parent, in bytes.
KEPT_BYTES = 64 * 1024


def state(number: int, nbytes: int) -> dict[str, Any]:
    """What the generation of this number is: easily made and easily told from all others."""
    return {
        "own": np.full(nbytes // 8, float(number)),
        "kept": np.arange(KEPT_BYTES // 8, dtype=np.float64),
        "number": number,
    }


def is_state(found: Any, number: int) -> bool:
    """Whether it is that generation, every byte of it."""
    own = np.asarray(found["own"])
    kept = np.asarray(found["kept"])
    return bool(
        found["number"] == number
        and (own == number).all()
        and (kept == np.arange(KEPT_BYTES // 8)).all()
    )


class Clerk:
    """One order after another, for one connection."""

    _held = -1

    def save(self, root: str, path: str, number: int, nbytes: int, **more: Any) -> dict[str, Any]:
        """Publish a generation; ``parent`` and ``parent_digest`` as for ``weights.save``."""
        done = weights.save(state(number, nbytes), path, root=root, **more)
        return {
            "digest": done.digest,
            "written": done.bytes_written,
            "kept": done.tensors_inherited,
        }

    def save_when(self, told: str, **how: Any) -> dict[str, Any]:
        """Publish once a file of this client is there: orders may not reach it by then."""
        Path(f"{told}.waits").touch()
        while not os.path.exists(told):
            time.sleep(0.02)
        done = self.save(**how)
        Path(f"{told}.done").touch()
        return done

    def load(self, root: str, path: str, number: int, **more: Any) -> bool:
        """Load a generation, every digest checked; whether it is the one of this number."""
        return is_state(weights.load(path, root=root, **more), number)

    def look(self, path: str) -> bool:
        """Whether something is to be seen; if not, this client will believe so for a while."""
        return os.path.exists(path)

    def save_plain(self, path: str, number: int, nbytes: int) -> dict[str, Any]:
        """As a trial does that knows nothing of bequeath, and then its agent."""
        with open(path, "wb") as file:
            np.save(file, np.full(nbytes // 8, float(number)))
        told = published_digest(path)
        return {"kind": told.kind, "digest": told.digest}

    def load_plain(self, path: str, number: int, digest: str) -> bool:
        """As the agent of a child does, and then the child."""
        verify_tree(path, digest)
        return bool((np.load(path) == number).all())

    def write_naively(self, path: str, number: int, nbytes: int) -> None:
        """Open the path, write, close: what most programs do."""
        with open(path, "wb") as file:
            np.save(file, np.full(nbytes // 8, float(number)))

    def read_naively(self, path: str, number: int, within_s: float) -> str:
        """Open the path as soon as it exists: "good", or what was wrong."""
        end = time.monotonic() + within_s
        while not os.path.exists(path):
            if time.monotonic() > end:
                return "stale"
        try:
            found = np.load(path)
        except (OSError, ValueError, EOFError):
            return "torn"
        return "good" if found.size and (found == number).all() else "torn"

    def appears(self, path: str, how: str, within_s: float) -> float:
        """Seconds until a path that was missed before is seen, by a way of asking for it."""
        begun = time.monotonic()
        while not os.path.exists(path):
            if time.monotonic() - begun > within_s:
                return within_s
            _ASK[how](path)
            time.sleep(0.05)
        return time.monotonic() - begun

    def remove(self, path: str) -> None:
        """Take one file away."""
        os.unlink(path)

    def hold(self, path: str) -> None:
        """Open a file as a reader does that takes its time."""
        self._held = os.open(path, os.O_RDONLY)

    def read_held(self) -> int:
        """Read it, from the server and not from what this client remembers."""
        size = os.fstat(self._held).st_size
        os.posix_fadvise(self._held, 0, 0, os.POSIX_FADV_DONTNEED)
        return sum(len(os.pread(self._held, 65536, at)) for at in range(0, size, 65536))

    def keep(self, root: str, rows: list[dict[str, Any]], pins: list[int]) -> list[int]:
        """A sweep of the weight keeper that keeps the best trial only; which ones went."""
        ledger = MemoryLedger({row["id"]: LedgerRow(**row) for row in rows})
        ledger.pinned = dict.fromkeys(pins, "")
        folder = Path(tempfile.mkdtemp())
        keeper = WeightKeeper(folder, Path(root), ledger, Policy(Keep.BEST, 1))
        return [one.trial for one in keeper.sweep(lambda trials: trials).doomed]

    def sweep(self, root: str, path: str, later_s: float) -> int:
        """Remove what crashes left at a save path, as if it were so much later."""
        rows = {1: LedgerRow(1, save_path=path)}
        clock = time.time() + later_s
        return LeftoverSweep(Path(root), MemoryLedger(rows), clock=lambda: clock).look()

    def listing(self, path: str) -> list[str]:
        """The names in a folder, as this client sees them now."""
        revalidate(path, os.path.dirname(path))
        return sorted(os.listdir(path))


def _touch(path: str) -> None:
    name = os.path.join(os.path.dirname(path), f".asked-{os.getpid()}")
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
    os.unlink(name)


def _open_folder(path: str) -> None:
    os.close(os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY))


#: Ways to have a client look at a folder anew; compared with doing nothing.
_ASK: dict[str, Callable[[str], object]] = {
    "nothing": lambda path: None,
    "list": lambda path: os.listdir(os.path.dirname(path)),
    "open": _open_folder,
    "touch": _touch,
    "ask": lambda path: revalidate(path, os.path.dirname(path)),
    "stat": lambda path: os.stat(os.path.dirname(path)),
}


def answer(clerk: Clerk, line: str) -> dict[str, Any]:
    """Do an order."""
    order = json.loads(line)
    begun = time.monotonic()
    try:
        value = getattr(clerk, order.pop("do"))(**order)
    except (TrialRuntimeError, OSError) as error:
        return {"error": type(error).__name__, "text": str(error), "s": time.monotonic() - begun}
    return {"value": value, "s": time.monotonic() - begun}


def serve(connection: socket.socket, clerk: Clerk) -> None:
    """All orders of one connection."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, connection.makefile("rw", encoding="ascii") as lines:
        for line in lines:
            lines.write(json.dumps(answer(clerk, line)) + "\n")
            lines.flush()


def main(kind: type[Clerk] = Clerk) -> None:
    """Listen, for as long as the machine runs; each connection has a clerk of its own."""
    with socket.create_server(("", PORT), reuse_port=True) as server:
        print("listening", flush=True)
        while True:
            connection, _ = server.accept()
            threading.Thread(target=serve, args=(connection, kind()), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
