"""Leading an experiment in the foreground: progress, Ctrl-C, and the summary at the end."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from dispatcher.cli.closing import print_closing
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.core.model import Phase
from dispatcher.live_view.scene import Observer
from dispatcher.live_view.watching import Watching
from dispatcher.notices import Notice, NoticeKind

if TYPE_CHECKING:
    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.head.head import Head

#: Notices that are printed; the others are in the log, or in the picture.
_SHOWN = {
    NoticeKind.TUNER_ERROR: "tuner error",
    NoticeKind.TUNER_NOTE: "tuner",
    NoticeKind.STALL: "stall",
    NoticeKind.STACKS: "stacks of the blocked threads",
    NoticeKind.PEER_FAULT: "refused",
    NoticeKind.RETENTION: "weights",
    NoticeKind.WORKER: "worker",
    NoticeKind.DISK: "disk",
    NoticeKind.TRIAL: "cannot run",
    NoticeKind.FILES: "files",
    NoticeKind.JOURNAL: "journal",
}


def lead(
    handle: ExperimentHandle,
    *,
    as_json: bool,
    take_over: bool = False,
    leaves_trials: bool = False,
) -> None:
    """Lead to the end and exit accordingly. Blocks; must be called in the main thread.

    Args:
        handle: on the experiment.
        as_json: print the outcome as one JSON document.
        take_over: lead even if another head does.
        leaves_trials: SIGTERM ends this head alone, as the end of a job or pod is no wish to stop.

    Raises:
        typer.Exit: unless the experiment is completed.
        DispatcherError: another head leads it or has taken over, or the head ended early.
    """
    from dispatcher.head.collector import walk_less
    from dispatcher.head.head import Head

    watching = Watching(Observer(handle.folder, handle.name))
    head = Head(
        handle.folder, on_notice=lambda notice: _tell(watching, notice), take_over=take_over
    )
    signals = _Signals(head, watching, leaves_trials=leaves_trials)
    signals.install()
    watching.start()
    began = time.monotonic()
    walk_less()
    try:
        phase = head.run()
    finally:
        signals.over = True
        watching.close()
        signals.restore()
    print_closing(handle, phase, time.monotonic() - began, as_json=as_json)
    code = exit_code_of(phase, interrupted=signals.came)
    if code is not ExitCode.OK:
        raise typer.Exit(code)


def _tell(watching: Watching, notice: Notice) -> None:
    word = _SHOWN.get(notice.kind)
    if word is not None:
        about = f" (trial {notice.trial})" if notice.trial is not None else ""
        watching.tell(f"{word}{about}: {notice.text}")


def exit_code_of(phase: Phase, *, interrupted: bool) -> ExitCode:
    """Return the exit code for the end of an experiment."""
    if phase is Phase.COMPLETED:
        return ExitCode.OK
    if phase is Phase.FAILED:
        return ExitCode.USER
    return ExitCode.INTERRUPTED if interrupted else ExitCode.EXPERIMENT_STOPPED


class _Signals:
    """Signal handlers: Ctrl-C once drains, twice stops at once, a third time leaves.

    SIGTERM and the end of the terminal stop at once, or leave.
    """

    def __init__(self, head: Head, watching: Watching, *, leaves_trials: bool) -> None:
        self._head = head
        self._watching = watching
        self._leaves_trials = leaves_trials
        self._before: dict[int, Any] = {}
        self._interrupts = 0
        self.came = False
        self.over = False  # the head has ended and takes no more requests

    def install(self) -> None:
        """Install the handlers. In the main thread."""
        handlers = {
            signal.SIGINT: self._interrupt,
            signal.SIGTERM: self._terminate,
            signal.SIGHUP: self._terminate,
        }
        for number, handler in handlers.items():
            self._before[number] = signal.signal(number, handler)

    def restore(self) -> None:
        """Restore the handlers from before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.over:
            return
        self.came = True
        self._interrupts += 1
        if self._interrupts == 1:
            self._watching.tell(
                "Ctrl-C: running trials may finish, no new ones start; again stops them at once"
            )
            self._head.request_stop("drain", "Ctrl-C")
        elif self._interrupts == 2:
            self._watching.tell("Ctrl-C twice: stopping the trials; 'bequeath resume' goes on")
            self._head.request_stop("now", "Ctrl-C twice")
        else:
            _leave()

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if self.over:
            return
        if self._leaves_trials:
            _leave()
        self.came = True
        self._head.request_stop("now", signal.Signals(number).name)


def _leave() -> NoReturn:
    """End this process where it stands. The journal holds everything; agents end the trials after
    headGrace."""
    os.write(2, b"left at once; trials still running end after headGrace\n")
    os._exit(ExitCode.INTERRUPTED)
