"""The lead of a study: its record, its tuner and its assessor, joined in one thread."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.errors import UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.snapshot import to_json, to_shared
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.notebook.spoken import warn
from dispatcher.study.assessing import StudyAssessor
from dispatcher.study.flushing import Flusher
from dispatcher.study.proposing import StudyTuner
from dispatcher.study.record import StudyRecord
from dispatcher.study.trial import StudyTrial
from dispatcher.study.turn import StudyTurn
from dispatcher.tuner_host.proposals import Nonsense, propose
from dispatcher.wiring.weights import weights_root

#: Results after which the tuner's own state is kept again: a study whose program was killed repeats
#: at most so many.
_KEEP_STATE_EVERY = 256

#: Slots that stay empty before it is clear that no trial will come into them.
_SPARE_SLOTS = 8

#: The key under which the parameters lie that are enqueued in a study without a space.
_ENQUEUED = "enqueued"


class Wish(NamedTuple):
    """Parameters that are enqueued in a study without a space."""

    key: int  # in their order
    parameters: dict[str, Any]


class StudyLead:
    """Joins record, tuner and assessor of one study. Not thread-safe: the study holds a lock.

    Args:
        place: its folder.
        config: its file.
        lock: the study's.

    Raises:
        ExperimentBusy: another process leads it.
        DispatcherError: its tuner or its record cannot be had.
    """

    def __init__(
        self,
        place: ExperimentFolder,
        config: ExperimentConfig,
        lock: StudyTurn,
    ) -> None:
        self.config = config
        self._place = place
        self._lock = lock
        self._root = weights_root(config, place)
        self._record = StudyRecord(place, config)
        self._flusher = Flusher(lock, self._record.commit)
        try:
            self._tuner = StudyTuner(config, place, self._record.state)
            self._tuner.recall(self._record.calls, self._record.tuner_state)
            self._record.calls.clear()
            self._assessor = StudyAssessor.of(config, place)
            self._ours: dict[int, StudyTrial] = {}  # asked for, and not over
            self._started: deque[a.StartAttempt] = deque()  # to be run, and nobody has them yet
            self._before = self._record.begun()  # begun by programs before this
            self._since_state = 0
            self._refusal = ""
            wishes = json.loads(self._record.noted(_ENQUEUED) or "[]")
            self._wishes = [Wish(key, each) for key, each in enumerate(wishes)]
            self._begun_wishes: dict[int, Wish] = {}  # by trials that are not on record
            self._carry_out(self._record.begin())
            self._record.commit()
        except BaseException:
            self._record.close()
            raise

    # -- carrying out -----------------------------------------------------------------------

    def _carry_out(self, actions: Iterable[a.Action]) -> None:
        """Do what follows from facts, and from what is done. Raises what the tuner raises."""
        queue = deque(actions)
        while queue:
            action = queue.popleft()
            if isinstance(action, a.StartAttempt):
                self._started.append(action)
            elif isinstance(action, a.Deliver):
                queue.extend(self._deliver(action))
            elif isinstance(action, a.TellImport):
                self._tuner.take_results(json.loads(action.data))
                queue.extend(self._record.take(e.ImportDelivered(action.number)))
            elif isinstance(action, a.Assess):
                queue.extend(self._assess(action))
            elif isinstance(action, a.StopAttempt) and action.trial in self._ours:
                self._ours[action.trial].stops = True
            elif isinstance(action, a.ReportTunerError):
                self._refusal = action.text

    def _deliver(self, action: a.Deliver) -> list[a.Action]:
        """Tell the tuner of an end: what it raises leaves the delivery owed, and is passed on."""
        out: list[a.Action] = []
        number = action.trial
        if action.value is not None and not action.result_delivered:
            parameters, value = json.loads(action.parameters), json.loads(action.value)
            self._tuner.result(number, parameters, value, by_hand=action.by_hand)
            out += self._record.take(e.ResultDelivered(number))
        self._tuner.end(number, success=action.success)
        if self._assessor is not None:
            self._assessor.end(number, success=action.success)
        return out + self._record.take(e.EndDelivered(number))

    def _assess(self, action: a.Assess) -> list[a.Action]:
        if self._assessor is None or self._assessor.goes_on(action.trial, action.value):
            return []
        stop = e.TrialStopRequested(action.trial, EndReason.STOPPED_EARLY)
        return self._record.take(stop)

    # -- a trial's way ----------------------------------------------------------------------

    def _put_on_record(self, trial: StudyTrial, *, with_weights: bool) -> None:
        """Make a trial's parameters final: from now on it is a trial that runs.

        Args:
            trial: one of this study's.
            with_weights: it may save weights.
        """
        if trial.on_record:
            return
        try:
            proposal = propose(trial.id, trial.values, self._tuner.rules)
        except Nonsense as error:
            raise UserError(f"trial {trial.id} cannot have these parameters: {error}") from None
        if proposal.save_path is None and with_weights:
            proposal = replace(proposal, save_path=f"trials/{trial.id}")
        if trial.parent is not None:
            source = self._record.state.trials[TrialId(trial.parent)].save_path
            proposal = replace(proposal, restore_path=source)
        events: list[e.Event] = [*self._grown(), proposal]
        self._refusal = ""
        self._carry_out(self._record.take(*events))
        while TrialId(trial.id) in self._record.state.queued:  # behind what was enqueued
            self._one_more_slot()
        record = self._record.in_flight(trial.id)
        if record is None:
            self._ours.pop(trial.id, None)
            raise UserError(
                f"trial {trial.id} cannot begin: {self._refusal or 'its parent failed'}"
            )
        self._started = deque(order for order in self._started if order.trial != trial.id)
        trial.descend(record.parent)
        trial.on_record = True
        self._forget_wish(trial)
        began = e.AttemptStarted(record.id, record.attempt, os.getpid())
        self._carry_out(self._record.take(began))

    def _grown(self) -> Iterable[e.Event]:
        """Write down names that were suggested for the first time."""
        if self._tuner.by_run is None or len(self._tuner.dimensions) == len(
            self.config.search_space
        ):
            return
        written = self._tuner.written
        config = self.config.model_copy(update={"search_space": written})
        self._place.change_config(to_json(config), to_shared(config))
        self.config = config
        yield e.SearchSpaceUpdated(json.dumps(written))
        outside = self._tuner.show_held()
        if outside:
            warn(
                f"{outside} results of the warm start lie outside of the bounds that were "
                "suggested; the tuner does not see them"
            )

    def _forget_wish(self, trial: StudyTrial) -> None:
        if self._begun_wishes.pop(trial.id, None) is not None:
            self._note_wishes()

    def _note_wishes(self) -> None:
        left = [each.parameters for each in self._all_wishes()]
        self._record.note(_ENQUEUED, json.dumps(left))

    def _one_more_slot(self) -> None:
        """Have room for one trial more. Raises ``UserError`` where room alone brings none."""
        state = self._record.state
        settings = state.settings
        taken = len(state.running) + len(state.queued) + len(state.open)
        if settings.slots > taken + _SPARE_SLOTS:
            why = state.phase_reason or "its limits, or what a trial needs, allow none"
            raise UserError(f"this study begins no further trial: {why}")
        more = replace(settings, slots=settings.slots + 1)
        self._carry_out(self._record.take(e.SettingsUpdated(more)))

    def _all_wishes(self) -> list[Wish]:
        return sorted((*self._begun_wishes.values(), *self._wishes), key=lambda each: each.key)

    def _next(self, trial: StudyTrial) -> tuple[TrialId, int, int]:
        """The trial's number, its attempt, and the number of its next message."""
        record = self._record.state.trials[TrialId(trial.id)]
        return record.id, record.attempt, max(record.last_seq, record.weights_seq) + 1

    def _end(self, trial: StudyTrial, reason: EndReason, *before: e.Event, text: str = "") -> None:
        record = self._record.state.trials[TrialId(trial.id)]
        took = time.monotonic() - trial.began
        over = e.AttemptEnded(
            record.id,
            record.attempt,
            reason,
            exit_code=1 if reason is EndReason.FAILED else 0,
            text=text,
            wall_s=took,
        )
        actions = self._record.take(*before, over)
        del self._ours[trial.id]
        try:
            self._carry_out(actions)
        finally:
            self._commit(took)
        self._since_state += 1
        if self._since_state >= _KEEP_STATE_EVERY:
            self._keep_state()

    def _keep_state(self) -> None:
        state = self._tuner.state()
        self._since_state = 0
        if state is not None:
            self._record.keep_tuner_state(state)

    def _commit(self, took: float = 0.0) -> None:
        """Write what was taken, in ``took`` seconds: now, or with what follows in milliseconds."""
        if self._record.commit_soon(took):
            self._flusher.written()
        else:
            self._flusher.soon()

    # -- its end ----------------------------------------------------------------------------

    def flush(self) -> None:
        """Write all that is known, for readers in other processes."""
        if not self._record.closed:
            self._record.commit()

    def close(self) -> None:
        """Keep the tuner's state, record the end, and let others lead."""
        if self._record.closed:
            return
        self._flusher.close()
        try:
            if self._record.can_keep_state:
                self._keep_state()
        finally:
            self._record.close()
