"""Plots for requests: computed by processes beside the server, a few at once, and kept for a while.

Forests and pictures take seconds of a processor and tens of megabytes of libraries: neither is
the server's, which answers others meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from dispatcher import queries
from dispatcher.errors import DispatcherError, InternalError, PassingBackendError, UserError
from dispatcher.folders.names import STORE_NAME
from dispatcher.folders.status import is_led
from dispatcher.operations.faults import FAULTS, Problem
from dispatcher.operations.operation import Operation
from dispatcher.operations.table import PLOT_SLOTS
from dispatcher.web.answering import encoded
from dispatcher.web.faults import RequestRefused
from dispatcher.web.plot_process import DONE, WantedPlot
from dispatcher.web.work import Pools

#: Seconds after which a plot is given up.
LIMIT_S: Final = 180.0

#: Different plots that may be under way or wait.
MOST_WAITING: Final = 16

#: Answers that are kept, and their bytes.
_MOST_KEPT: Final = 64
_MOST_BYTES: Final = 16 << 20

#: If something changed, a plot is made anew after so many seconds, or times what it took.
ANEW_S: Final = 5.0
ANEW_TIMES: Final = 20.0

#: Seconds after which time alone makes another plot of what goes on.
_CLOCK_S: Final = 15.0

#: The schema from which stores count their changes.
_COUNTED: Final = "0003"

Key = tuple[Path, str, bytes]


class _Kept(NamedTuple):
    """An answer, of which cursor it is, when it came and how long it took."""

    cursor: str
    at: float
    took: float
    body: bytes


class Plots:
    """Computes plots. In the event loop's thread.

    Args:
        pools: threads that wait for processes.
        processes: those who compute.
    """

    def __init__(self, pools: Pools, processes: PlotProcesses | None = None) -> None:
        self._pools = pools
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._under_way: dict[Key, asyncio.Task[bytes]] = {}
        self._processes = processes or PlotProcesses()

    @property
    def under_way(self) -> int:
        """How many are computed, or wait for it."""
        return len(self._under_way)

    async def body(self, folder: Path, row: Operation[Any, Any], given: Any) -> bytes:
        """Return the answer of an operation: JSON or PNG.

        Nothing is computed twice for the same trials; while they change, one plot takes a
        twentieth of a processor at most, however many look.

        Args:
            folder: of the experiment.
            row: of the table of operations.
            given: its arguments.

        Raises:
            RequestRefused: too many are under way.
            DispatcherError: as the operation; or it took too long.
        """
        key = (folder, row.name, encoded(given))
        task = self._under_way.get(key)
        if task is None:
            cursor = await self._pools.stores.run(_cursor, folder)
            if row is PLOT_SLOTS:  # it goes on while nothing changes
                cursor += await self._pools.stores.run(_clock, folder)
            kept = self._kept.get(key)
            if kept is not None and _is_fresh(kept, cursor):
                self._kept.move_to_end(key)
                return kept.body
            task = self._under_way.get(key)
        if task is None:
            if len(self._under_way) >= MOST_WAITING:
                raise RequestRefused("too-many", f"{MOST_WAITING} plots are computed already")
            task = asyncio.create_task(self._compute(key, row, given, cursor))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(task)

    def close(self) -> None:
        """End the processes."""
        self._processes.close()

    async def _compute(self, key: Key, row: Operation[Any, Any], given: Any, cursor: str) -> bytes:
        wanted = WantedPlot(str(key[0]), row.name, msgspec.structs.asdict(given))
        began = time.monotonic()
        body = await self._pools.plots.run(self._processes.ask, wanted)
        now = time.monotonic()
        self._kept[key] = _Kept(cursor, now, now - began, body)
        while len(self._kept) > _MOST_KEPT or self._held() > _MOST_BYTES:
            self._kept.popitem(last=False)
        return body

    def _held(self) -> int:
        return sum(len(one.body) for one in self._kept.values())

    def _ended(self, key: Key, task: asyncio.Task[bytes]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waited may have gone


class PlotProcesses:
    """Processes that compute. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def ask(self, wanted: WantedPlot) -> bytes:
        """Have a plot computed, and return it. Blocks."""
        process = self._started()
        try:
            out, _ = process.communicate(msgspec.json.encode(wanted), LIMIT_S)
        except subprocess.TimeoutExpired:
            raise PassingBackendError(
                f"the plot was not there after {LIMIT_S:g} s",
                hint="choose fewer parameters, or draw it with: bequeath plot",
            ) from None
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            with self._lock:
                self.running.discard(process)
        if out[:1] == DONE:
            return out[1:]
        raise error_of(out[1:], process.returncode)

    def close(self) -> None:
        """End those that run, and begin no more."""
        with self._lock:
            self._closed = True
            for process in self.running:
                process.kill()

    def _started(self) -> subprocess.Popen[bytes]:
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        with self._lock:
            if self._closed:
                raise PassingBackendError("the server ends")
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dispatcher.web.plot_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **one},
            )
            self.running.add(process)
        return process


def _is_fresh(kept: _Kept, cursor: str) -> bool:
    age = time.monotonic() - kept.at
    return kept.cursor == cursor or age < max(ANEW_S, ANEW_TIMES * kept.took)


def _cursor(folder: Path) -> str:
    with queries.ExperimentReader.open(folder) as reader:
        cursor = queries.cursor_now(reader)
        if reader.schema < _COUNTED:
            cursor += _written(folder)  # nobody counts changes: the files have to do
        return cursor


def _clock(folder: Path) -> str:
    """Return what changes each few seconds as long as a head leads."""
    return f"@{time.monotonic() // _CLOCK_S:.0f}" if is_led(folder) else ""


def _written(folder: Path) -> str:
    found = []
    for file in sorted(folder.glob(f"{STORE_NAME}*")):
        try:
            info = file.stat()
        except FileNotFoundError:
            continue
        if not file.name.endswith("-shm"):
            found.append((info.st_mtime_ns, info.st_size))
    return str(found)


def error_of(answer: bytes, code: int) -> DispatcherError:
    """Return the error that a process told, or that it ended without a word.

    Args:
        answer: a :class:`~dispatcher.operations.faults.Problem` as JSON; empty if it said nothing.
        code: the exit code.
    """
    try:
        problem = msgspec.json.decode(answer, type=Problem)
    except msgspec.DecodeError:
        return PassingBackendError(
            f"the process that computes the plot ended with {code}",
            hint="it may have needed too much memory; choose fewer parameters",
        )
    kinds = {each.kind: base for base, each in FAULTS.items()}
    base = kinds.get(problem.kind, UserError if problem.exit_code == 3 else InternalError)
    return base(problem.message, hint=problem.hint, where=problem.where)
