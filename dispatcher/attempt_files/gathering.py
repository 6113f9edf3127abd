"""Fetching of files that trials leave on other machines: one thread looks, a few others fetch.

The engine knows nothing of it and never waits. Ended attempts are read from the store, the record
of fetched ones from the folder, so that the next head goes on where this one ended. Machines that
cannot be reached are tried again with growing pauses, and a disk that is low gets nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dispatcher.attempt_files.attempt_at import AttemptAt
from dispatcher.attempt_files.ended_attempts import EndedAttempts
from dispatcher.attempt_files.transfer_threads import TransferThreads, Turn
from dispatcher.errors import DispatcherError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.service import LOCAL
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.queries import ExperimentReader
from dispatcher.wiring.places import Place, places

if TYPE_CHECKING:
    from dispatcher.attempt_files.worker_fetching import WorkerFetching

#: Seconds between looks at the store; at its slowest, looking takes a twentieth of the time.
EVERY_S = 2.0
_REST = 20

#: Records of what was fetched that are written at a look: each is a file beside a thousand others.
MOST_RECORDS = 20

_log = logging.getLogger("bequeath.files")


@dataclass
class Gathering:
    """The fetching from all workers on other machines.

    Args:
        config: of the experiment.
        folder: its folder.
        note: gets a sentence on files that could not be fetched. From any thread.
    """

    config: ExperimentConfig
    folder: ExperimentFolder
    note: Callable[[str], None]

    def __post_init__(self) -> None:
        remote = [place for place in places(self.config) if place.worker != LOCAL]
        wanted = remote if self.config.fetch.kinds else []
        self._workers = {one.worker: self._of(one) for one in wanted}
        self._closing = threading.Event()
        self._until = float("inf")  # moment of the monotonic clock
        self._over = False
        self._records = 0  # that may still be written at this look
        self._transfers = TransferThreads("files: transfer")
        self._thread = threading.Thread(target=self._run, name="files", daemon=True)

    def _of(self, place: Place) -> WorkerFetching:
        # Ways to all platforms hang on it, which an experiment on this machine does without.
        from dispatcher.attempt_files.worker_fetching import WorkerFetching

        return WorkerFetching(self.config, self.folder, place, self.note)

    def start(self) -> None:
        """Begin, with the attempts that heads before have left."""
        if self._workers:
            self._thread.start()

    def finish(self, limit_s: float) -> None:
        """Fetch the rest, of machines that answer; then end. Blocks for ``limit_s`` at most; a
        fetch under way then ends where it is, and the next head goes on."""
        self._until = time.monotonic() + limit_s
        self._closing.set()
        self._transfers.close(self._until)
        if self._thread.is_alive():
            self._thread.join(limit_s)
        self._transfers.join(max(0.0, self._until - time.monotonic()))
        left = {one.name: one.missing for one in self._workers.values() if one.missing}
        if left:
            places = ", ".join(f"{many} on {name}" for name, many in left.items())
            self.note(
                f"files of attempts were not fetched: {places}; 'bequeath experiment fetch "
                f"{self.folder.id}' does it"
            )

    def once(self) -> Iterable[tuple[str, int, DispatcherError | None]]:
        """Fetch missing files now, worker by worker; yield each with how many attempts were dealt
        with, and the error that ended it early. Agents are asked by way of the head where nobody
        else sees their files. Blocks."""
        with ExitStack() as stack:
            ended: EndedAttempts | None = None
            for worker in self._workers.values():
                try:
                    if ended is None:
                        reader = stack.enter_context(ExperimentReader.open(self.folder.path))
                        ended = EndedAttempts(reader, self._below())
                    self._hand_out(ended.look())
                except DispatcherError as error:
                    yield worker.name, 0, error
                    continue
                yield worker.name, *worker.once(ended.bound)

    def _below(self) -> int:
        return min(worker.below for worker in self._workers.values())

    def _hand_out(self, attempts: Iterable[AttemptAt]) -> None:
        for attempt in attempts:
            if (worker := self._workers.get(attempt.worker or "")) is not None:
                worker.hand_in(attempt)

    def _run(self) -> None:
        try:
            with ExperimentReader.open(self.folder.path) as reader:
                self._serve(EndedAttempts(reader, self._below()))
        except Exception as error:  # noqa: BLE001 - the top of a thread
            _log.exception("files are fetched no more")
            self.note(f"files of attempts are fetched no more: {error}")
        finally:
            self._over = True
            for worker in self._workers.values():
                self._end(worker)
            self._transfers.close(self._until)

    def _serve(self, ended: EndedAttempts) -> None:
        while True:
            closing = self._closing.is_set()  # before the look, so that the last ends are seen
            began = time.monotonic()
            self._records = MOST_RECORDS
            self._hand_out(ended.look())
            begun = [self._begin(each, ended.bound, closing) for each in self._workers.values()]
            self._transfers.relieve()
            took = time.monotonic() - began
            if all(worker.silent for worker in self._workers.values()):
                return
            if not closing:
                self._closing.wait(max(EVERY_S, _REST * took))
            elif not any(begun) or time.monotonic() >= self._until:
                return
            else:
                self._transfers.wait_until_idle(max(EVERY_S, _REST * took))

    def _begin(self, worker: WorkerFetching, bound: int, closing: bool) -> bool:
        """Have a worker's files fetched, if there are any; whether that is under way.

        Args:
            worker: whose files.
            bound: the first trial that has not ended.
            closing: whether the end is near: a worker that was away a moment ago gets no try more.
        """
        if not worker.turn.acquire(blocking=False):
            return True
        if not worker.silent:
            worker.settle(bound)
            self._records -= self._records > 0 and worker.record_if_due()
        if worker.ready() and not (closing and worker.failures):
            self._transfers.put(lambda turn: self._work(worker, turn), doubtful=worker.failures > 0)
            return True
        if worker.rests():
            self._transfers.put(lambda turn: self._rest(worker))
            return False
        worker.turn.release()
        return False

    def _work(self, worker: WorkerFetching, turn: Turn) -> None:
        """Fetch from one worker, whose lock was taken. Thread: one of the transfers."""
        try:
            worker.work(turn.goes_on)
        finally:
            self._let_go(worker)

    def _rest(self, worker: WorkerFetching) -> None:
        """Log out of one worker, whose lock was taken. Thread: one of the transfers."""
        try:
            worker.log_out()
        finally:
            self._let_go(worker)

    def _let_go(self, worker: WorkerFetching) -> None:
        worker.turn.release()
        if self._over:
            self._end(worker)

    def _end(self, worker: WorkerFetching) -> None:
        """Log out of a worker, unless somebody does who works there: who lets go of it sees that
        all is over."""
        if worker.turn.acquire(blocking=False):
            try:
                worker.end()
            finally:
                worker.turn.release()
