"""The fetching from one worker: what is to be fetched there, and what became of it."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator

from dispatcher.attempt_files import fetching
from dispatcher.attempt_files.attempt_at import AttemptAt, kept_here
from dispatcher.attempt_files.by_head import FilesByHead
from dispatcher.attempt_files.gathered import Gathered
from dispatcher.attempt_files.places import PlaceFiles, ShowsNoFiles
from dispatcher.core.events import DiskLow
from dispatcher.errors import DispatcherError, PassingBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.plugged import word_of
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.platforms.registry import platform_of
from dispatcher.ports import AttemptFiles
from dispatcher.wiring.places import Place
from dispatcher.wiring.watermark import Watermark
from trial_runtime.retry import growing_pause

#: Seconds until the record of what was fetched is written again.
RECORD_EVERY_S = 10.0

#: Seconds until a machine is tried again, doubled each time.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0

#: Without anything to fetch for so long (seconds), a machine is logged out of.
IDLE_S = 60.0

_log = logging.getLogger("bequeath.files")


class _TurnOver(Exception):
    """A fetch makes room in its midst; the next turn goes on where it ended."""


def _pause_s(failures: int) -> float:
    """Seconds until the next try after so many failures in a row."""
    return growing_pause(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)


def _of_the_machine(error: DispatcherError) -> bool:
    """Whether the error is the machine's, so that the next attempt would fail, too."""
    return isinstance(error, PassingBackendError | ShowsNoFiles)


class WorkerFetching:
    """See above. Thread: who has :attr:`turn`, but for :meth:`hand_in`, :attr:`missing` and
    :attr:`silent`.

    Args:
        config: of the experiment.
        folder: its folder.
        place: the worker's.
        note: gets a sentence on files that could not be fetched. From any thread.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        folder: ExperimentFolder,
        place: Place,
        note: Callable[[str], None],
    ) -> None:
        self.name = place.worker
        self.turn = threading.Lock()
        self.failures = 0  #: in a row
        self.silent = False  #: nothing is fetched here any more
        self._given_up = 0  # attempts
        self._kinds = config.fetch.kinds
        self._most_bytes = config.fetch.max_size
        self._folder = folder
        self._note = note
        self._files = PlaceFiles(config, folder, place)
        self._logged_in = False
        self._used_at = 0.0
        self._service = place.service
        self._asks_agents = False
        self._disk = Watermark(str(folder.path), config.disk_reserve)
        self._gathered = Gathered.read(folder.path, self.name, self._kinds)
        self._recorded_at = 0.0
        self._changed = self._risen = False
        self._handed_in: queue.SimpleQueue[AttemptAt] = queue.SimpleQueue()
        self._todo: dict[str, AttemptAt] = {}  # by name
        self._again_at = 0.0  # moment of the monotonic clock
        self._put_off: dict[str, tuple[int, float]] = {}  # by attempt: failures, and until when
        self._last_error = ""

    @property
    def below(self) -> int:
        """Trials below this one have left nothing here that was not dealt with."""
        return self._gathered.below

    @property
    def missing(self) -> int:
        """How many attempts are to be dealt with, more or less. Any thread."""
        return self._given_up if self.silent else len(self._todo) + self._handed_in.qsize()

    def hand_in(self, attempt: AttemptAt) -> None:
        """Note an attempt that has ended here, for the first time or once more. Any thread."""
        if not self.silent:
            self._handed_in.put(attempt)

    def ready(self) -> bool:
        """Whether there is anything that can be fetched now."""
        self._take_in()
        return bool(self._todo) and time.monotonic() >= self._again_at and bool(self._ready())

    def rests(self) -> bool:
        """Whether it is logged in, and was not needed for a while."""
        return self._logged_in and time.monotonic() - self._used_at > IDLE_S

    def log_out(self) -> None:
        """Log out; the next fetch logs in again. Blocks."""
        if self._logged_in:
            self._logged_in = False
            self._files.close()

    def settle(self, bound: int) -> None:
        """Note that everything below a trial was dealt with, but for what is left.

        Args:
            bound: the first trial that has not ended, at the look whose attempts were handed in.
        """
        self._take_in()
        if not self.failures:
            below = min([bound, *(each.trial for each in self._todo.values())])
            if below > self._gathered.below:
                self._gathered.rise(below)
                self._risen = True

    def record_if_due(self) -> bool:
        """Write the record, once in a while; whether it was written."""
        due = self._changed and time.monotonic() - self._recorded_at > RECORD_EVERY_S
        if due:
            self._record()
        return due

    def end(self) -> None:
        """Log out, and write the record. Blocks."""
        self.log_out()
        if self._changed or self._risen:
            self._record()

    def once(self, bound: int) -> tuple[int, DispatcherError | None]:
        """Fetch what was handed in, and end. Agents are asked by way of the head where nobody else
        sees their files. Blocks.

        Args:
            bound: as for :meth:`settle`.

        Returns:
            How many attempts were dealt with, and the error that ended it early.
        """
        count = 0
        trouble: DispatcherError | None = None
        again = False
        self._asks_agents = platform_of(self._service).has_agent
        try:
            self._take_in()
            for attempt in self._ready():
                try:
                    self._fetch(attempt, lambda: True)
                except DispatcherError as error:
                    if again or _of_the_machine(error):
                        raise
                    trouble, again = error, True
                    continue
                count += 1
                again = False
            self.settle(bound)
            return count, trouble
        except DispatcherError as error:
            return count, error
        finally:
            self.end()

    def work(self, goes_on: Callable[[], bool]) -> None:
        """Fetch what is ready. Blocks. An error that is none of ours ends the fetching from here.

        Args:
            goes_on: is asked once in a while; false: the turn is over.
        """
        try:
            self._work(goes_on)
        except ShowsNoFiles:
            self._fall_silent(0)
        except _TurnOver:
            pass
        except Exception as error:  # noqa: BLE001 - as at the top of a thread
            _log.exception("%s: files are fetched no more", self.name)
            self._fall_silent(self.missing)
            self._note(f"files of {self.name} are fetched no more: {error}")
        finally:
            self._used_at = time.monotonic()

    def _work(self, goes_on: Callable[[], bool]) -> None:
        """One whose files cannot be had is put off, so that it holds up no other; if the next fails
        as well, the machine is left alone for a while."""
        again = self.failures > 0
        for attempt in self._ready():
            if not goes_on():
                return
            try:
                self._fetch(attempt, goes_on)
            except ShowsNoFiles:
                raise
            except DispatcherError as error:
                self._report(error)
                if again or _of_the_machine(error):
                    self.failures += 1
                    self._again_at = time.monotonic() + _pause_s(self.failures)
                    return
                again = True
                failures = self._put_off.get(attempt.name, (0, 0.0))[0] + 1
                self._put_off[attempt.name] = failures, time.monotonic() + _pause_s(failures)
                continue
            again = False
            self.failures = 0
            self._put_off.pop(attempt.name, None)
        if not self._put_off:
            self._last_error = ""

    def _fall_silent(self, given_up: int) -> None:
        self._given_up = given_up
        self.silent = True
        self._take_in()
        self._todo.clear()
        self.log_out()

    def _take_in(self) -> None:
        while not self._handed_in.empty():
            attempt = self._handed_in.get_nowait()
            if not self._gathered.has(attempt.trial, attempt.number):
                self._todo[attempt.name] = attempt

    def _ready(self) -> list[AttemptAt]:
        now = time.monotonic()
        found = [x for x in self._todo.values() if self._put_off.get(x.name, (0, now))[1] <= now]
        return sorted(found, key=lambda each: (each.trial, each.number))

    def _report(self, error: DispatcherError) -> None:
        text = f"{error.where}: {error.message}" if error.where else error.message
        _log.info("%s: files cannot be fetched: %s", self.name, text)
        if text != self._last_error and not isinstance(error, PassingBackendError):
            self._note(f"files of {self.name} cannot be fetched: {text}")
        self._last_error = text

    def _fetch(self, attempt: AttemptAt, goes_on: Callable[[], bool]) -> None:
        """Fetch one attempt. Raises ``DispatcherError``: it does not count as done."""
        low = self._disk.judge(os.statvfs(self._folder.path))
        if isinstance(low, DiskLow):
            text = "the disk here is low; files stay where they are"
            raise PassingBackendError(text, where=low.place)

        def progress(path: str, have: int, size: int) -> None:
            if not goes_on() and have < size:
                raise _TurnOver

        self._logged_in = True
        with self._files_of(attempt) as files:
            outcome = fetching.fetch(
                files,
                kept_here(self._folder, attempt),
                attempt.name,
                lambda entry: fetching.kind_of(entry.path) in self._kinds,
                most_bytes=self._most_bytes,
                over=self._kinds,
                progress=progress,
            )
        for path, why in outcome.left.items():
            _log.info("%s: %s of attempt %s stays there: %s", self.name, path, attempt.name, why)
        self._gathered.done.add(attempt.name)
        self._todo.pop(attempt.name, None)
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

    def _record(self) -> None:
        self._recorded_at = time.monotonic()
        try:
            self._gathered.write(self._folder.path, self.name)
            self._changed = self._risen = False
        except OSError as error:
            _log.info("%s: no record of what was fetched: %s", self.name, error.strerror)
