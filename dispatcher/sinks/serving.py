"""The process that feeds the sinks of one experiment: a thread for each, none waits for another.

The head starts it as ``bequeath sink --serve`` and knows no more of it than its number. When it is
asked to end, or its head is gone, it gives what is there already and ends; a tracker that is away
then gets the rest when the experiment goes on, or by ``bequeath sink``.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dispatcher.errors import (
    DispatcherError,
    ExperimentNotFound,
    PermanentBackendError,
    UserError,
)
from dispatcher.experiment.sink_base import SinkConfig
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import STORE_NAME
from dispatcher.folders.ownership import demand_ours
from dispatcher.folders.status import is_led
from dispatcher.queries import ExperimentReader
from dispatcher.sinks.cursor import SinkBusy
from dispatcher.sinks.feeding import Feeding
from dispatcher.sinks.standing import SinkStanding, write_standing
from trial_runtime.masking import Mask, MaskFilter
from trial_runtime.retry import growing_pause

#: Seconds between looks at the store when nothing is new, and between looks at the head.
EVERY_S: Final = 5.0
LOOK_S: Final = 1.0

#: Seconds until a tracker that failed is tried again, doubled each time.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0

#: Seconds that a process goes on for after its head has ended: a tracker may be slow.
LONGEST_REST_S: Final = 600.0

#: Seconds after which a sink's standing is written again though nothing is new.
_TELL_EVERY_S: Final = 30.0

_OVER: Final = ("completed", "stopped", "failed")

_log = logging.getLogger("bequeath.sinks")


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """How far one sink is, for whoever watches."""

    taken: int
    behind: int
    error: str


class SinkThread:
    """Feeds one sink until nothing more will come. Thread: its own, or the caller's by :meth:`run`.

    Args:
        folder: the experiment's.
        section: of the sink.
        ending: set when what is there already is all that is wanted.
        on_progress: called now and then; errors come without secrets.
        tell: whether ``status`` is to know of it, by a file in the experiment's folder.
    """

    def __init__(
        self,
        folder: Path,
        section: SinkConfig,
        ending: threading.Event,
        on_progress: Callable[[SinkProgress], None] = lambda _: None,
        *,
        tell: bool = True,
    ) -> None:
        self.error: DispatcherError | None = None
        self.target = ""
        self._folder = folder
        self._section = section
        self._ending = ending
        self._on_progress = on_progress
        self._tell = tell
        self._mask = Mask()
        self._written: tuple[float, SinkStanding] | None = None
        self._taken, self._behind = 0, 0
        self._heard_at: float | None = None
        self.thread = threading.Thread(target=self._run, name=f"sink {section.title}", daemon=True)

    def _run(self) -> None:
        log = logging.getLogger(f"bequeath.sinks.{self._section.title}")
        log.addFilter(MaskFilter(self._mask))
        try:
            self.run()
        except Exception as error:
            log.error("the sink fails", exc_info=error)
            self._show(f"{type(error).__name__}: {error}")

    def run(self) -> None:
        """Feed it. Blocks; :attr:`error` is the last one, if something was not taken."""
        failures = 0
        while True:
            try:
                with self._feeding() as feeding:
                    self.target = feeding.target
                    if failures == 0:
                        self._note(feeding)
                    while self._fed(feeding):
                        failures = 0
                    self.error = None
                    return
            except (DispatcherError, OSError) as error:
                self.error = self._judged(error)
                self._show(str(self.error))
            failures += 1
            gone = isinstance(self.error, ExperimentNotFound) or not self._folder.is_dir()
            if gone or self._ending.is_set() or _hopeless(self.error):
                return
            if self._ending.wait(growing_pause(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)):
                failures = 0  # one more try, with what is there

    def _feeding(self) -> Feeding:
        def note(feeding: Feeding) -> None:
            self._note(feeding, more=True)

        return Feeding(self._folder, self._section, self._mask.learn, note)

    def _judged(self, error: DispatcherError | OSError) -> DispatcherError:
        """The error as one of ours, without secrets."""
        if isinstance(error, DispatcherError):
            error.message, error.hint = self._mask(error.message), self._mask(error.hint)
            return error
        where = str(error.filename or self._folder)
        return PermanentBackendError(f"a sink stops: {error.strerror or error}", where=where)

    def _fed(self, feeding: Feeding) -> bool:
        """Take one step; false when it was the last. What was deleted is readable for as long as it
        is open, and nobody wants it."""
        if not (self._folder / STORE_NAME).exists():
            raise ExperimentNotFound("the experiment was deleted", where=str(self._folder))
        ending = self._ending.is_set()  # before the look: what came before it is in the look
        more = feeding.step()
        self._note(feeding, more=more)
        if more:
            return True
        if ending:
            feeding.finish(_status(self._folder))
            return False
        self._ending.wait(EVERY_S)
        return True

    def _note(self, feeding: Feeding, *, more: bool = False) -> None:
        self._taken, self._behind = feeding.taken, feeding.behind
        if not more:
            self._heard_at = time.time()
        self._show(feeding.trouble, logged=True)

    def _show(self, error: str, *, logged: bool = False) -> None:
        """Tell those who watch, and write it down where something is new. ``logged``: the error
        stands in a log of its own."""
        error = self._mask(" ".join(error.split()))
        self._on_progress(SinkProgress(self._taken, self._behind, error))
        if not self._tell:
            return
        section = self._section
        target = self._mask(self.target)
        now = SinkStanding(
            section.title, section.word, target, self._behind, self._taken, self._heard_at, error
        )
        if self._written is not None:
            at, before = self._written
            same = (before.taken, before.error) == (now.taken, now.error)
            if same and time.monotonic() - at < _TELL_EVERY_S:
                return
            if now.error and now.error != before.error and not logged:
                _log.warning("%s: %s", section.title, now.error)
        self._written = (time.monotonic(), now)
        try:
            if self._folder.is_dir():
                write_standing(self._folder, now)
        except OSError as trouble:
            _log.warning("%s: its standing cannot be written: %s", section.title, trouble.strerror)


def _hopeless(error: DispatcherError | None) -> bool:
    """Whether trying again mends nothing: what a user has to change."""
    return isinstance(error, UserError) and not isinstance(error, SinkBusy)


def _status(folder: Path) -> str:
    """The status of an experiment that is over, as its head has written it down; else empty."""
    try:
        with ExperimentReader.open(folder) as reader:
            phase = reader.meta("phase") or ""
            same = reader.meta("phase_epoch") == reader.meta("epoch")
    except DispatcherError:
        return ""
    return phase if same and phase in _OVER else ""


def serve(folder: Path) -> int:
    """Feed the sinks that an experiment's file names, until its head ends. Blocks.

    Args:
        folder: the experiment's, which is ours.

    Raises:
        NotOurs: the experiment is somebody else's: nobody's references are looked up for it.
        ExperimentFileError: its record does not hold.
    """
    from dispatcher.experiment.snapshot import from_json  # a whole file's keys: half a second

    demand_ours(folder)
    place = ExperimentFolder(folder)
    sinks = from_json(place.read_config(), str(place.config)).fed
    os.nice(10)
    ending = threading.Event()
    threads = [SinkThread(folder, section, ending) for section in sinks]
    _end_on_signals(ending)
    head = os.getppid()
    for each in threads:
        each.thread.start()
    until = float("inf")
    while any(each.thread.is_alive() for each in threads) and time.monotonic() < until:
        if not ending.is_set() and (os.getppid() != head or not is_led(folder)):
            ending.set()
        if ending.is_set() and until == float("inf"):
            until = time.monotonic() + LONGEST_REST_S
        _wait_a_little(threads)
    return 1 if any(each.error is not None for each in threads) else 0


def _wait_a_little(threads: Sequence[SinkThread]) -> None:
    first = next((each.thread for each in threads if each.thread.is_alive()), None)
    if first is not None:
        first.join(LOOK_S)


def _end_on_signals(ending: threading.Event) -> None:
    """The first signal asks for an end, the second one is obeyed at once."""

    def stop(number: int, _: object) -> None:
        if ending.is_set():
            os._exit(128 + number)
        ending.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # as the head has started us
