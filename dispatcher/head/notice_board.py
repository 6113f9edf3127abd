"""Notices of the head's threads, passed on in one thread to the caller that watches the head."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dispatcher.core import actions as a
from dispatcher.core.stalls import STACKS_FILE
from dispatcher.head.logs import HeadLog
from dispatcher.head.story import RefusalStory
from dispatcher.maintenance.retention import RetentionThread
from dispatcher.notices import Notice, NoticeKind
from dispatcher.ports import RefusedEvent
from dispatcher.tuner_host.stacks import together
from trial_runtime import durable_file
from trial_runtime.masking import Mask
from trial_runtime.refusals import Refusals


class NoticeBoard:
    """Notices are pinned from any thread, and read out in the head's own.

    Args:
        notify: called with each notice, in the head's own thread.
        mask: hides secrets in every text.
        log: gets each notice, too.
    """

    def __init__(
        self,
        notify: Callable[[Notice], None],
        mask: Mask,
        log: HeadLog,
    ) -> None:
        self._notify = notify
        self._mask = mask
        self._log = log
        self._waiting: queue.SimpleQueue[Notice] = queue.SimpleQueue()

    def pin(self, kind: NoticeKind, text: str = "", trial: int | None = None) -> None:
        """Add a notice. From any thread.

        Args:
            kind: of the notice.
            text: secrets in it are hidden when it is read out.
            trial: the trial that it is about, if any.
        """
        self._waiting.put(Notice(kind, text, trial))

    def read_out_one(self, timeout_s: float) -> bool:
        """Log and pass on the next notice; false if none came in ``timeout_s`` seconds."""
        try:
            notice = self._waiting.get(timeout=timeout_s)
        except queue.Empty:
            return False
        self._read_out(notice)
        return True

    def read_out_the_rest(self) -> None:
        """Log and pass on all notices that were pinned so far."""
        while not self._waiting.empty():
            self._read_out(self._waiting.get())

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return self._waiting.empty()

    def _read_out(self, notice: Notice) -> None:
        notice = replace(notice, text=self._mask(notice.text))
        self._log.info(notice.kind.value, text=notice.text, trial=notice.trial)
        self._notify(notice)


class EngineWatcher:
    """Turns actions of the engine for the head into notices. Thread: the engine's.

    Args:
        board: takes the notices.
        retention: learns of ended trials and of grants.
        reports: the folder of reports; stacks of blocked tuner threads are written beside it.
        story: of events that the core refuses.
    """

    def __init__(
        self, board: NoticeBoard, retention: RetentionThread, reports: Path, story: RefusalStory
    ) -> None:
        self._board = board
        self._retention = retention
        self._reports = reports
        self._story = story
        self.faults = Refusals()

    def act(self, action: a.HeadAction) -> None:
        """Carry out an action for the head itself."""
        pin = self._board.pin
        match action:
            case a.TrialIsOver():
                self._retention.trial_over()
            case a.ReportTunerError(trial=which, method=method, text=text):
                pin(NoticeKind.TUNER_ERROR, f"{method}: {text}", which)
            case a.ReportStall(certain=certain, text=text):
                word = "deadlock" if certain else "suspected stall"
                pin(NoticeKind.STALL, f"{word}: {text}")
            case a.ReportAsking(text=text):
                pin(NoticeKind.TUNER_NOTE, text)
            case a.ReportWorker(text=text):
                pin(NoticeKind.WORKER, text)
            case a.ReportTrial(trial=which, text=text):
                pin(NoticeKind.TRIAL, text, which)
            case a.ReportDisk(text=text):
                pin(NoticeKind.DISK, text)
            case a.GrantRemoval(trials=trials):
                self._retention.granted(trials)
            case a.ReviewStores():
                self._retention.stores_over_bound()
            case a.GrantVersions():
                self._retention.versions_granted(action)
            case a.Finish(reason=reason):
                pin(NoticeKind.FINISHED, reason)

    def stacks(self, stacks: dict[int, str]) -> None:
        """Show stacks of blocked tuner threads, and keep them in a file."""
        self._reports.mkdir(exist_ok=True)
        report = together(stacks)
        content = (report + "\n").encode(errors="replace")
        durable_file.replace(self._reports.parent / STACKS_FILE, content, mode=None, durable=False)
        self._board.pin(NoticeKind.STACKS, report)

    def peer_fault(self, owner: str, error: Exception) -> None:
        """Note a bad message of a peer; one that goes on does not flood the log."""
        peer = owner or "a client"
        if self.faults.count(peer):
            self._pin_fault(peer, error)

    def refused(self, refused: RefusedEvent) -> None:
        """Tell the story of a refused event: of a peer's as of its other faults; of ours with the
        error, which ends the engine."""
        if not refused.is_peers_fault:
            refused.error.hint = self._story.tell(refused)
        elif self.faults.count(refused.owner):
            refused.error.hint = self._story.tell(refused)
            self._pin_fault(refused.owner, refused.error)

    def _pin_fault(self, peer: str, error: Exception) -> None:
        many = self.faults.counts.get(peer, 0)
        self._board.pin(NoticeKind.PEER_FAULT, f"{peer} ({many} so far): {error}")
