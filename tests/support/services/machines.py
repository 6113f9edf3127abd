"""The machines of a service of ours: its jobs wait for places, and run as processes of this
machine, each in a group of its own, which is ended by its number."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

STEP_S = 0.05

#: Why a job has ended, beside its own will.
STOPPED, PREEMPTED, WALL_TIME, OUT_OF_MEMORY = "stopped", "preempted", "wall time", "out of memory"


@dataclass
class PlayedJob:
    """A job.

    Attributes:
        name: as in its order.
        argvs: the commands of its nodes.
        variables: of each of its nodes.
        document: the order, as it came.
        wall_s: when it is ended (seconds from its start); None: never.
        created: by the service's clock (seconds since the epoch); so are ``started``, ``ended``.
        code: the exit code of its first node.
        cause: why it was ended; empty: by itself.
        word: the state that it shows in place of its own; empty: its own.
        retries: how often it was started again.
    """

    name: str
    argvs: Sequence[Sequence[str]]
    variables: Sequence[Mapping[str, str]]
    document: Any = None
    wall_s: float | None = None
    created: float = 0.0
    started: float | None = None
    ended: float | None = None
    code: int | None = None
    cause: str = ""
    word: str = ""
    retries: int = 0
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)
    dies_at: float | None = None
    ends_at: float | None = None
    output: Path = Path("/dev/null")

    @property
    def waits(self) -> bool:
        """Whether it has not begun, and is to."""
        return self.started is None and self.ended is None

    @property
    def runs(self) -> bool:
        """Whether it has begun, and not ended."""
        return self.started is not None and self.ended is None

    def end(self, cause: str, grace_s: float) -> None:
        """Ask its processes to end; by force after a grace."""
        self.cause = self.cause or cause
        moment = time.monotonic() + grace_s
        self.dies_at = moment if self.dies_at is None else min(self.dies_at, moment)
        for process in self.processes:
            _signal(process, signal.SIGTERM)


class Machines:
    """Places for jobs, and the thread that fills them.

    Args:
        folder: for the output of jobs.
        places: jobs that run at once; a test may change it.
        now: the service's clock (seconds since the epoch).
        lock: of all state of the service.
    """

    def __init__(
        self, folder: Path, places: int, now: Callable[[], float], lock: threading.RLock
    ) -> None:
        self.places = places
        self.jobs: dict[str, PlayedJob] = {}  # by what the service knows each by
        self.error: BaseException | None = None
        self._folder = folder
        self._now = now
        self._lock = lock
        self._temporary = tempfile.TemporaryDirectory(
            prefix="job-", dir="/tmp"
        )  # sockets are there
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="machines", daemon=True)
        self._thread.start()

    def add(self, id_: str, job: PlayedJob) -> None:
        """Take a job; it waits until there is a place."""
        with self._lock:
            job.created = self._now()
            job.output = self._folder / f"{id_.replace('/', '_')}.output"
            self.jobs[id_] = job

    def stop(self, id_: str, cause: str = STOPPED, grace_s: float = 1.0) -> None:
        """End a job, whether it waits or runs; one that has ended stays as it is."""
        with self._lock:
            job = self.jobs[id_]
            if job.waits:
                job.ended, job.cause = self._now(), cause
            elif job.runs:
                job.end(cause, grace_s)

    def begin_again(self, id_: str) -> None:
        """End the processes of a job, and start it again in another place, as a service that
        knows better."""
        with self._lock:
            job = self.jobs[id_]
            for process in job.processes:
                _kill(process)
            job.processes.clear()
            job.retries += 1
            self._start(job)

    def running(self) -> list[str]:
        """What the service knows those by that run."""
        with self._lock:
            return [id_ for id_, job in self.jobs.items() if job.runs]

    def close(self) -> None:
        """End everything, at once."""
        self._over.set()
        self._thread.join(30)
        with self._lock:
            for job in self.jobs.values():
                for process in job.processes:
                    _kill(process)
        self._temporary.cleanup()
        if self.error is not None:
            raise self.error

    def remove(self, id_: str) -> None:
        """End a job at once, and forget it."""
        with self._lock:
            for process in self.jobs.pop(id_).processes:
                _kill(process)

    def _work(self) -> None:
        try:
            while not self._over.wait(STEP_S):
                with self._lock:
                    for job in list(self.jobs.values()):
                        self._keep(job)
        except BaseException as error:
            self.error = error
            raise

    def _keep(self, job: PlayedJob) -> None:
        if job.waits:
            if self.places and sum(each.runs for each in self.jobs.values()) < self.places:
                self._start(job)  # a thousand that wait cost nothing
            return
        if not job.runs:
            return
        moment = time.monotonic()
        if job.ends_at is not None and moment >= job.ends_at:
            job.ends_at = None
            job.end(WALL_TIME, 3.0)
        if job.dies_at is not None and moment >= job.dies_at:
            for process in job.processes:
                _kill(process)
        codes = [process.poll() for process in job.processes]
        if all(code is not None for code in codes):
            job.code = next((code for code in codes if code), 0)
            job.ended = self._now()
            for process in job.processes:
                _kill(process)  # what it has left behind

    def _start(self, job: PlayedJob) -> None:
        job.started = self._now()
        job.ends_at = None if job.wall_s is None else time.monotonic() + job.wall_s
        home = self._folder / "home"
        home.mkdir(exist_ok=True)
        for argv, variables in zip(job.argvs, job.variables, strict=True):
            with job.output.open("ab") as output:
                process = subprocess.Popen(
                    list(argv),
                    env={
                        "PATH": os.environ["PATH"],
                        "HOME": str(home),
                        "TMPDIR": self._temporary.name,
                        **variables,
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    cwd=self._folder,
                )
            job.processes.append(process)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its session, as a container ends: a command such as ``timeout`` has
    a group of its own in it."""
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == process.pid:
                os.kill(pid, signal.SIGKILL)
    process.wait()
