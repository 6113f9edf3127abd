"""The record of a study: the core and the journal in the program's own process, led by it.

It does what an engine does, without its thread and its sockets: facts are applied and committed,
and the study carries out what follows.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from copy import copy
from typing import Any

from dispatcher.core import actions as a
from dispatcher.core import apply, judged_by, worker_of
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import OVER, AttemptState, State, Trial, TrialState
from dispatcher.errors import ExperimentBusy, UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.beginning import begin_epoch, news_of_head
from dispatcher.head.lead import open_journal, take_the_lead
from dispatcher.ports import JournalEntry, Snapshot
from dispatcher.store.compaction import Compaction
from dispatcher.store.leadership import Leadership
from dispatcher.store.replay.folding import fold_at_start, read_whole_past
from dispatcher.wiring.settings import settings_of

#: The one worker: the program itself, in the place of the machine that the file names.
PROGRAM = WorkerId("local")

#: Seconds within which commits are made one: trials that take less are written together. What took
#: longer to compute is written before ``tell`` returns.
TOGETHER_S = 0.01

#: Seconds of commits that a power cut may take back; no crash of the program does.
_ON_DISK_EVERY_S = 1.0


class StudyRecord:
    """Leads the experiment of a study, in this process. Not thread-safe: the study holds a lock.

    Args:
        place: the experiment's folder.
        config: its file, as it is now.

    Raises:
        ExperimentBusy: another process leads it.
        StoreError: its journal cannot be read.
    """

    def __init__(self, place: ExperimentFolder, config: ExperimentConfig) -> None:
        self.place = place
        self._entries: list[JournalEntry] = []
        self._earlier: list[Trial] = []  # records since the last commit, of moments that count
        self._synced_at = self.committed_at = time.monotonic()
        with ExitStack() as stack:
            lead = stack.enter_context(_the_lead(place))
            self._epoch = lead.epoch
            self._journal = open_journal(place, lead)
            stack.callback(self._journal.close)
            self._compaction = Compaction(self._journal)
            past = read_whole_past(self._journal, self._compaction)
            fold_at_start(self._journal, self._compaction, past)
            self.state: State = past.state
            self.calls: list[list[Any]] = past.calls  #: of the tuner, to be repeated
            kept = self._journal.latest_snapshot()
            self.tuner_state: str | None = None if kept is None else kept.state
            news = news_of_head(lead.epoch, self.state, settings_of(config), place.journal)
            self._row = begin_epoch(
                self._journal, self.state, news, max(time.time(), self.state.now), durable=True
            )
            self._stack: ExitStack | None = stack.pop_all()

    def begin(self) -> list[a.Action]:
        """Join as the worker, with all that was asked for before and not told; what follows."""
        holds = tuple((t, self.state.trials[t].attempt) for t in sorted(self.begun()))
        slots = max(self.state.settings.slots, len(holds))
        return self.take(e.WorkerJoined(PROGRAM, slots, holds))

    def answer(self) -> list[a.Action]:
        """Let the core open requests from now on, and hand over what is owed; what follows."""
        return [] if self.state.host_ready else self.take(e.TunerHostReady())

    def begun(self) -> frozenset[TrialId]:
        """The trials that run and that somebody has got; others were only to be started."""
        trials = self.state.trials
        return frozenset(
            each
            for each in self.state.running
            if trials[each].attempt_state is not AttemptState.STARTING
        )

    def take(self, *events: e.Event) -> list[a.Action]:
        """Apply facts, in this order; return what follows.

        Raises:
            UserError: the study is closed.
        """
        if self._stack is None:
            raise UserError(
                "this study is closed",
                hint=f"open it again: bq.Study(folder={str(self.place.path)!r})",
            )
        out: list[a.Action] = []
        for event in events:
            for fact in (*judged_by(self.state, event), event):
                at = time.time()
                worker = worker_of(self.state.trials, fact)
                if isinstance(fact, e.EndDelivered):  # the core drops its parameters now
                    self._earlier.append(copy(self.state.trials[fact.trial]))
                step = apply(self.state, fact, at)
                for action in step.actions:
                    if isinstance(action, a.OpenRequest):  # its row says when it was opened
                        self._earlier.append(copy(self.state.trials[action.trial]))
                self._entries.append(JournalEntry(at, fact, step.counted, worker))
                out.extend(step.actions)
        return out

    def commit(self, *, durable: bool = False) -> None:
        """Write what was taken, so that no end of this process loses it.

        Args:
            durable: on the disk, too. Else that is done with the first commit after a second.
        """
        dirty = self.state.dirty
        if not (self._entries or dirty or durable):
            return
        self.committed_at = time.monotonic()
        durable = durable or self.committed_at - self._synced_at >= _ON_DISK_EVERY_S
        touched = [self.state.trials[each] for each in dirty]
        # What cannot be written now, on a disk that is full, goes with the next commit.
        self._row = self._journal.append(
            self._entries, touched, durable=durable, earlier=self._earlier
        )
        if durable:
            self._synced_at = self.committed_at
        self._entries, self._earlier = [], []
        dirty.clear()

    def commit_soon(self, took: float = 0.0) -> bool:
        """Write what was taken, unless something was written just now; whether it is written.

        Args:
            took: seconds that it took to compute. What took long never waits.
        """
        if took <= TOGETHER_S and time.monotonic() - self.committed_at < TOGETHER_S:
            return False
        self.commit()
        return True

    @property
    def can_keep_state(self) -> bool:
        """Whether no delivery is owed: a state of the tuner's is exact only then."""
        return not self.state.delivering

    def keep_tuner_state(self, text: str) -> None:
        """Keep the tuner's own state, exact as of now; what lies before it may be folded."""
        self.commit()
        self._journal.save_snapshot(Snapshot(self._row, text))
        self._compaction.offer(self.state, self._row)
        self._compaction.tidy()

    def note(self, key: str, value: str) -> None:
        """Keep a small fact of the study; on the disk when it returns."""
        self._journal.set_meta(key, value)

    def noted(self, key: str) -> str | None:
        """Read a fact that :meth:`note` kept."""
        return self._journal.get_meta(key)

    def in_flight(self, number: int) -> Trial | None:
        """The record of a trial that runs; None if it does not."""
        trial = self.state.trials.get(TrialId(number))
        return trial if trial is not None and trial.state is TrialState.RUNNING else None

    @property
    def closed(self) -> bool:
        """Whether it leads no more."""
        return self._stack is None

    def close(self) -> None:
        """Record the end, and let others lead. Idempotent."""
        if self._stack is None:
            return
        with self._stack:  # lets go of the lead, whatever happens
            if self.state.phase not in OVER:
                self.take(e.StopRequested(e.StopKind.DRAIN, "its program has closed it"))
            try:
                self.commit(durable=True)
                self._journal.record_end(self._epoch, "stopped", self.state.phase_reason)
            finally:
                self._stack = None


def _the_lead(place: ExperimentFolder) -> Leadership:
    try:
        return take_the_lead(place, take_over=False)
    except ExperimentBusy as error:  # no command ends a program that leads a study
        hint = "call close() of the study there, or end that program"
        raise ExperimentBusy(error.message, hint=hint, where=error.where) from None
