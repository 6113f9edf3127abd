"""The head of a floor: commits and frames of a run, and nothing that decides about them.

``python -m benchmarks.bare_head '{"what": "rounds", …}'`` starts its peers
(:mod:`benchmarks.bare_peers`), does what :mod:`benchmarks.floors` asks for, prints what it took
as JSON, and ends. SQLite is set as the journal sets it (write-ahead log, FULL where a commit must
be on the disk), the transport is ZeroMQ over IPC as for the tuner host and a local agent.
"""

from __future__ import annotations

import json
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import zmq

from benchmarks.bare_peers import NUMBERS, STOP, WORDS_A_FRAME
from benchmarks.counting import waits_of

ROOT = Path(__file__).parent.parent
ROW_BYTES = 120  # of a journal's row, about
RECORD_BYTES = 200  # of a trial's row in the read model
END_S = 5.0  # for a peer that was told to stop
SILENCE_MS = 30_000  # after which a peer is given up
POLLIN = int(zmq.POLLIN)


class Store:
    """A file with a table that grows and one whose rows are replaced."""

    def __init__(self, path: Path) -> None:
        self._raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._raw.execute("PRAGMA journal_mode=WAL")
        self._raw.execute("PRAGMA synchronous=FULL")
        self._raw.execute("PRAGMA cache_size=-1024")
        self._raw.execute("CREATE TABLE journal (n INTEGER PRIMARY KEY, payload TEXT)")
        self._raw.execute("CREATE TABLE metrics (n INTEGER PRIMARY KEY, at REAL, value TEXT)")
        self._raw.execute("CREATE TABLE trials (id INTEGER PRIMARY KEY, at REAL, record TEXT)")
        self._durable = True
        self._next = 1
        self._payload = "j" * ROW_BYTES
        self._record = "t" * RECORD_BYTES

    def commit(
        self, journal: int, trials: int, updates: int, metrics: int = 0, *, durable: bool = True
    ) -> None:
        """So many rows appended, replaced and changed, in one transaction."""
        raw, first = self._raw, self._next
        if durable is not self._durable:
            raw.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        raw.execute("BEGIN IMMEDIATE")
        rows = [(first + i, self._payload) for i in range(journal)]
        raw.executemany("INSERT INTO journal VALUES (?, ?)", rows)
        if metrics:
            values = [(0.5, "0.5")] * metrics
            raw.executemany("INSERT INTO metrics (at, value) VALUES (?, ?)", values)
        records = [(first + i, 0.5, self._record) for i in range(trials)]
        raw.executemany("INSERT OR REPLACE INTO trials VALUES (?, ?, ?)", records)
        for i in range(updates):
            raw.execute("UPDATE trials SET at = ? WHERE id = ?", (1.5, first + i))
        raw.execute("COMMIT")
        self._next += max(journal, 1)

    def close(self) -> None:
        """End it."""
        self._raw.close()


class Head:
    """A ROUTER, a socket pair that wakes it, a store, and peers below it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"ipc://{folder}/head"
        self.store = Store(folder / "store.sqlite")
        self.below: list[subprocess.Popen[bytes]] = []
        self.names: list[bytes] = []
        self._came = 0  # bytes that nobody has asked for yet
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.setsockopt(zmq.LINGER, 500)
        self._router.bind(self.address)
        self._wake_in, self._wake_out = socket.socketpair()
        self._poller = zmq.Poller()
        self._poller.register(self._wake_in, POLLIN)
        self._poller.register(self._router, POLLIN)

    def start(self, role: str, **options: object) -> int:
        """Start a peer; its process id."""
        told = {"address": self.address, "folder": str(self.folder), **options}
        command = [sys.executable, "-m", "benchmarks.bare_peers", role, json.dumps(told)]
        self.below.append(subprocess.Popen(command, cwd=ROOT))
        return self.below[-1].pid

    def wait_for(self, role: str) -> None:
        """Until a peer has said its first word."""
        while not any(name == role.encode() for name in self.names):
            if not self._poller.poll(SILENCE_MS):
                raise TimeoutError(f"the bare {role} says nothing")
            self.names.append(self._router.recv_multipart()[0])

    def send(self, role: bytes, payload: bytes) -> None:
        """One frame."""
        self._router.send(role, zmq.SNDMORE)
        self._router.send(payload)

    def poll(self, timeout_ms: int = SILENCE_MS) -> list[bytes]:
        """Frames that came, after waiting for one or for :meth:`wake`."""
        frames = []
        for source, _ in self._poller.poll(timeout_ms):
            if source is not self._router:
                self._wake_in.recv(4096)
                continue
            while int(self._router.getsockopt(zmq.EVENTS)) & POLLIN:
                frames.append(self._router.recv_multipart()[1])
        return frames

    def receive(self, count: int) -> None:
        """That many bytes, in as many frames as they come in; what comes beyond is kept."""
        while self._came < count:
            frames = self.poll()
            if not frames:
                raise TimeoutError("a bare peer says nothing")
            self._came += sum(map(len, frames))
        self._came -= count

    def wake(self) -> None:
        """Let :meth:`poll` return. Any thread."""
        self._wake_out.send(b"w")

    def close(self) -> None:
        """End everything."""
        for name in self.names:
            self.send(name, STOP)
        for process in self.below:
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._router.close()
        self._context.term()
        self._wake_in.close()
        self._wake_out.close()
        self.store.close()


@contextmanager
def head() -> Iterator[Head]:
    """A head in a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="bq-floor-") as folder:
        one = Head(Path(folder))
        try:
            yield one
        finally:
            one.close()


def rounds(
    *, turns: Sequence[dict[str, Any]], count: int, warm: int, word_bytes: int
) -> dict[str, Any]:
    """Make these turns ``count`` times; CPU seconds of head, tuner and agent, and their waits."""
    with head() as one:
        tuner = one.start("tuner", word_bytes=word_bytes, blocked=1)
        agent = one.start("agent")
        one.wait_for("tuner")
        one.wait_for("agent")
        one.start("trial")  # whose time does not count
        counted = [psutil.Process(), psutil.Process(tuner), psutil.Process(agent)]
        for _ in range(warm):
            _round(one, turns)
        before = _spent(counted)
        for _ in range(count):
            _round(one, turns)
        after = _spent(counted)
    cpu, waits = (
        [late - early for early, late in zip(*both, strict=True)]
        for both in zip(before, after, strict=True)
    )
    return {"cpu_s": cpu, "waits": waits}


def _spent(processes: list[psutil.Process]) -> tuple[list[float], list[float]]:
    cpu = [float(sum(p.cpu_times()[:2])) for p in processes]
    return cpu, [float(waits_of(p.pid)) for p in processes]


def _round(one: Head, turns: Sequence[dict[str, Any]]) -> None:
    for turn in turns:
        if order := turn["order"]:
            one.send(turn["peer"].encode(), NUMBERS.pack(*order).ljust(turn["sent"], b"."))
        one.receive(turn["received"])
        rows = turn["rows"]
        one.store.commit(*rows, durable=turn["durable"])


def pairs(*, count: int, pause_s: float) -> dict[str, Any]:
    """From a durable commit to one that follows a frame to the tuner and its two words back."""
    latencies = []
    order = NUMBERS.pack(1, 0, 0, 0).ljust(108, b".")
    with head() as one:
        one.start("tuner", word_bytes=70, blocked=1)
        one.wait_for("tuner")
        for _ in range(count):
            one.store.commit(3, 3, 2, 1)
            began = time.perf_counter()
            one.send(b"tuner", order)
            one.receive(140)
            one.store.commit(3, 2, 1)
            latencies.append(time.perf_counter() - began)
            time.sleep(pause_s)
    return {"latencies_s": latencies}


def crowd(*, count: int, metrics_every_s: float = 0.0) -> dict[str, Any]:
    """From a durable commit, by which ``count`` blocked threads are let go one by one, to the
    commits of their words; meanwhile a thread may post a metric now and then."""
    word = 39
    waits: list[float] = []
    posted: deque[float] = deque()
    over = threading.Event()
    with head() as one:
        one.start("tuner", word_bytes=word, blocked=count)
        one.wait_for("tuner")
        if metrics_every_s:
            threading.Thread(
                target=_post, args=(posted, one.wake, over, metrics_every_s), daemon=True
            ).start()
            _metrics(one, posted, waits, 0.1)
        one.store.commit(3, 3, 2, 1)
        began = time.perf_counter()
        one.send(b"tuner", NUMBERS.pack(count, 0, 0, 0).ljust(107, b"."))
        started: list[float] = []
        words, of_end = 0, 1  # the first word is of the end, and lets nobody go
        while len(started) < count:
            words += sum(map(len, one.poll(0 if words else SILENCE_MS))) // word
            metrics = [posted.popleft() for _ in range(len(posted))]
            taken = min(words, WORDS_A_FRAME)
            words -= taken
            # The rows of all that were let go lag behind: 64 go with each batch.
            one.store.commit(taken, min(taken + 64, 2 * 64), taken, len(metrics))
            now = time.perf_counter()
            waits += [now - at for at in metrics]
            started += [now - began] * (taken - of_end if taken else 0)
            of_end = 0 if taken else of_end
        over.set()
    return {"first_s": started[0], "last_s": started[-1], "waits_s": waits}


def _post(
    posted: deque[float], wake: Callable[[], None], over: threading.Event, every_s: float
) -> None:
    while not over.wait(every_s):
        posted.append(time.perf_counter())
        wake()


def _metrics(one: Head, posted: deque[float], waits: list[float], seconds: float) -> None:
    """Nothing but metrics, for so long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        one.poll()
        taken = [posted.popleft() for _ in range(len(posted))]
        if taken:
            one.store.commit(0, 0, 0, len(taken))
        waits += [time.perf_counter() - at for at in taken]


KINDS: dict[str, Callable[..., dict[str, Any]]] = {"rounds": rounds, "pairs": pairs, "crowd": crowd}


def main() -> None:
    """Do it, and print what it took."""
    options = json.loads(sys.argv[1])
    json.dump(KINDS[options.pop("what")](**options), sys.stdout)


if __name__ == "__main__":
    main()
