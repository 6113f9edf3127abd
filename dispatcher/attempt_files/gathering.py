"""Fetching of files that trials leave on other machines: a thread for each worker.

The engine knows nothing of it and never waits. Ended attempts are read from the store, the record
of fetched ones from the folder, so that the next head goes on where this one ended. Machines that
cannot be reached are tried again with growing pauses, and a disk that is low gets nothing.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dispatcher.attempt_files import fetching
from dispatcher.attempt_files.attempt_at import AttemptAt, kept_here
from dispatcher.attempt_files.by_head import FilesByHead
from dispatcher.attempt_files.gathered import Gathered
from dispatcher.attempt_files.places import PlaceFiles, ShowsNoFiles
from dispatcher.core.events import DiskLow
from dispatcher.errors import BequeathError, PassingBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.plugged import word_of
from dispatcher.experiment.service import LOCAL
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.platforms.registry import platform_of
from dispatcher.ports import AttemptFiles
from dispatcher.queries import ExperimentReader
from dispatcher.wiring.places import Place, places
from dispatcher.wiring.watermark import Watermark
from trial_runtime.retry import growing_pause

#: Seconds between looks at the store, and until the record of what was fetched is written again.
EVERY_S = 2.0
RECORD_EVERY_S = 10.0

#: Seconds until a machine is tried again, doubled each time.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0

#: Without anything to fetch for so long (seconds), a machine is logged out of.
IDLE_S = 60.0

_log = logging.getLogger("bequeath.files")


def _pause_s(failures: int) -> float:
    """Seconds until the next try after so many failures in a row."""
    return growing_pause(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)


def _of_the_machine(error: BequeathError) -> bool:
    """Whether the error is the machine's, so that the next attempt would fail, too."""
    return isinstance(error, PassingBackendError | ShowsNoFiles)


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
        wanted = self.config.fetch.kinds
        remote = [place for place in places(self.config) if place.worker != LOCAL]
        self._workers = [_Worker(self, place) for place in remote] if wanted else []

    def start(self) -> None:
        """Start the threads, with the attempts that heads before have left."""
        for worker in self._workers:
            worker.thread.start()

    def finish(self, limit_s: float) -> None:
        """Fetch the rest, of machines that answer; then end. Blocks for ``limit_s`` at most; a
        fetch under way then ends with this process, and the next one goes on."""
        until = time.monotonic() + limit_s
        for worker in self._workers:
            worker.close(until)
        for worker in self._workers:
            worker.join(max(0.0, until - time.monotonic()))
        left = {worker.name: worker.missing for worker in self._workers if worker.missing}
        if left:
            places = ", ".join(f"{many} on {name}" for name, many in left.items())
            self.note(
                f"files of attempts were not fetched: {places}; 'bequeath experiment fetch "
                f"{self.folder.id}' does it"
            )

    def once(self) -> Iterable[tuple[str, int, BequeathError | None]]:
        """Fetch missing files now, worker by worker; yield each with how many attempts were dealt
        with, and the error that ended it early. Agents are asked by way of the head where nobody
        else sees their files. Blocks."""
        for worker in self._workers:
            yield worker.name, *worker.once()


class _Worker:
    """The fetching from one worker. Thread: its own."""

    def __init__(self, gathering: Gathering, place: Place) -> None:
        self.name = place.worker
        self.missing = 0
        self._kinds = gathering.config.fetch.kinds
        self._most_bytes = gathering.config.fetch.max_size
        self._folder = gathering.folder
        self._note = gathering.note
        self._files = PlaceFiles(gathering.config, gathering.folder, place)
        self._service = place.service
        self._asks_agents = False
        self._disk = Watermark(str(self._folder.path), gathering.config.disk_reserve)
        self._gathered = Gathered.read(self._folder.path, self.name, self._kinds)
        self._recorded_at = 0.0
        self._changed = False
        self._closing = threading.Event()
        self._until = 0.0  # moment of the monotonic clock
        self._failures = 0  # in a row
        self._put_off: dict[str, tuple[int, float]] = {}  # by attempt: failures, and until when
        self._last_error = ""
        self.thread = threading.Thread(target=self._run, name=f"files {self.name}", daemon=True)

    def close(self, until: float) -> None:
        """Ask the thread to end by a moment of the monotonic clock. From another thread."""
        self._until = until
        self._closing.set()

    def join(self, limit_s: float) -> None:
        """Wait for the end of the thread. From another thread."""
        if self.thread.is_alive():
            self.thread.join(limit_s)

    def once(self) -> tuple[int, BequeathError | None]:
        """Fetch in the caller's thread; return how many attempts were dealt with, and the error."""
        count = 0
        trouble: BequeathError | None = None
        again = False
        self._asks_agents = platform_of(self._service).has_agent
        try:
            with ExperimentReader.open(self._folder.path) as reader:
                bound = self._first_that_goes_on(reader)
                ended = self._ended(reader)
                for attempt in ended:
                    try:
                        self._fetch(attempt)
                    except BequeathError as error:
                        if again or _of_the_machine(error):
                            raise
                        trouble, again = error, True
                        continue
                    count += 1
                    again = False
                left = [x for x in ended if not self._gathered.has(x.trial, x.number)]
                self._rise(bound, left)
            return count, trouble
        except BequeathError as error:
            return count, error
        finally:
            self._files.close()
            self._record()

    def _run(self) -> None:
        try:
            with ExperimentReader.open(self._folder.path) as reader:
                self._serve(reader)
        except Exception as error:  # noqa: BLE001 - the top of a thread
            _log.exception("%s: files are fetched no more", self.name)
            self._note(f"files of {self.name} are fetched no more: {error}")
        finally:
            self._files.close()
            self._record()

    def _serve(self, reader: ExperimentReader) -> None:
        busy_at = time.monotonic()
        while True:
            closing = self._closing.is_set()  # before the look, so that the last ends are seen
            began = time.monotonic()
            bound = self._first_that_goes_on(reader)
            todo = self._ended(reader)
            took = time.monotonic() - began
            self.missing = len(todo)
            if closing and self._failures:
                return  # it was away a moment ago: another try is not waited for
            if ready := self._ready(todo):
                try:
                    self._work(ready)
                except ShowsNoFiles:
                    self.missing = 0
                    return
                busy_at = time.monotonic()
            left = [each for each in todo if not self._gathered.has(each.trial, each.number)]
            if not self._failures:
                self._rise(bound, left)
            if closing and (not self._ready(left) or self._failures or self._late()):
                return
            if time.monotonic() - busy_at > IDLE_S:
                self._files.close()
            if time.monotonic() - self._recorded_at > RECORD_EVERY_S:
                self._record()
            self._closing.wait(max(EVERY_S, 20 * took))
            if self._failures:
                self._closing.wait(_pause_s(self._failures))

    def _late(self) -> bool:
        return self._closing.is_set() and time.monotonic() >= self._until

    def _ready(self, todo: list[AttemptAt]) -> list[AttemptAt]:
        now = time.monotonic()
        return [each for each in todo if self._put_off.get(each.name, (0, now))[1] <= now]

    def _work(self, todo: list[AttemptAt]) -> None:
        """Fetch attempts. One whose files cannot be had is put off, so that it holds up no other;
        if the next fails as well, the machine is left alone for a while."""
        again = self._failures > 0
        for attempt in todo:
            if self._late():
                return
            try:
                self._fetch(attempt)
            except ShowsNoFiles:
                raise
            except BequeathError as error:
                self._report(error)
                if again or _of_the_machine(error):
                    self._failures += 1
                    return
                again = True
                failures = self._put_off.get(attempt.name, (0, 0.0))[0] + 1
                self._put_off[attempt.name] = failures, time.monotonic() + _pause_s(failures)
                continue
            again = False
            self._failures = 0
            self.missing -= 1
            self._put_off.pop(attempt.name, None)
        if not self._put_off:
            self._last_error = ""

    def _report(self, error: BequeathError) -> None:
        text = f"{error.where}: {error.message}" if error.where else error.message
        _log.info("%s: files cannot be fetched: %s", self.name, text)
        if text != self._last_error and not isinstance(error, PassingBackendError):
            self._note(f"files of {self.name} cannot be fetched: {text}")
        self._last_error = text

    def _fetch(self, attempt: AttemptAt) -> None:
        """Fetch one attempt. Raises ``BequeathError``: it does not count as done."""
        low = self._disk.judge(os.statvfs(self._folder.path))
        if isinstance(low, DiskLow):
            text = "the disk here is low; files stay where they are"
            raise PassingBackendError(text, where=low.place)
        with self._files_of(attempt) as files:
            outcome = fetching.fetch(
                files,
                kept_here(self._folder, attempt),
                attempt.name,
                lambda entry: fetching.kind_of(entry.path) in self._kinds,
                most_bytes=self._most_bytes,
                over=self._kinds,
            )
        for path, why in outcome.left.items():
            _log.info("%s: %s of attempt %s stays there: %s", self.name, path, attempt.name, why)
        self._gathered.done.add(attempt.name)
        self._changed = True

    @contextlib.contextmanager
    def _files_of(self, attempt: AttemptAt) -> Iterator[AttemptFiles]:
        try:
            shown = self._files.of(attempt)
        except ShowsNoFiles:
            if not self._asks_agents:
                raise
        else:
            yield shown
            return
        by_head = FilesByHead(self._folder, attempt, word_of(self._service), gone_is_empty=True)
        with contextlib.closing(by_head):
            yield by_head

    def _ended(self, reader: ExperimentReader) -> list[AttemptAt]:
        """Read the attempts that have ended there and were not dealt with yet. One that was lost
        with its machine has no reported end: its successor, or its trial's end, shows it."""
        rows = reader.rows(
            "SELECT a.trial, a.attempt, a.pid FROM attempts a JOIN trials t ON t.id = a.trial "
            "WHERE a.trial >= ? AND a.worker = ? "
            "AND (a.end_reason IS NOT NULL OR t.attempt > a.attempt OR t.state = 'ended') "
            "ORDER BY a.trial, a.attempt",
            (self._gathered.below, self.name),
        )
        found = [AttemptAt(self.name, r["trial"], r["attempt"], r["pid"] or 0) for r in rows]
        return [each for each in found if not self._gathered.has(each.trial, each.number)]

    def _first_that_goes_on(self, reader: ExperimentReader) -> int:
        """Return the first trial that has not ended: none below it will leave anything more. Read
        before the ended ones: a trial that ends in between is found the next time."""
        row = reader.row(
            "SELECT id FROM trials WHERE id >= ? AND state <> 'ended' ORDER BY id LIMIT 1",
            (self._gathered.below,),
        ) or reader.row("SELECT max(id) + 1 AS id FROM trials")
        return 0 if row is None or row["id"] is None else int(row["id"])

    def _rise(self, bound: int, left: list[AttemptAt]) -> None:
        """Note that everything below ``bound`` was dealt with, but for what is left."""
        below = min([bound, *(each.trial for each in left)])
        if below > self._gathered.below:
            self._gathered.rise(below)
            self._changed = True

    def _record(self) -> None:
        self._recorded_at = time.monotonic()
        if not self._changed:
            return
        try:
            self._gathered.write(self._folder.path, self.name)
            self._changed = False
        except OSError as error:
            _log.info("%s: no record of what was fetched: %s", self.name, error.strerror)
