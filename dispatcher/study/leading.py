"""Answers what a study and its trials ask."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, Trial, TrialState
from dispatcher.core.results import lacking
from dispatcher.errors import UserError
from dispatcher.notebook.arguments import required
from dispatcher.notebook.spoken import warn
from dispatcher.study.carrying import StudyLead, Wish
from dispatcher.study.trial import (
    StudyTrial,
    number_of_step,
    number_of_trial,
    same_values,
    warn_of_unused,
)
from dispatcher.study.warm_start import FoundResults, WarmStart, fitting, misfit
from dispatcher.study.weights import WeightPaths, nobody_saved, without_parents
from dispatcher.tuner_host.proposals import Nonsense, propose
from trial_runtime.api_errors import InvalidMetric
from trial_runtime.facts import Weights
from trial_runtime.metric import metric_text
from tuners.objectives import directions_of, known_objectives
from tuners.space.model import Dimension
from tuners.space.sampling import as_spelt, is_legal

if TYPE_CHECKING:
    from trial_runtime.weights import Published


#: Characters of the reason of a failure that are kept.
_MOST_REASON = 10_000


class LedStudy(StudyLead):
    """Answers what a study and its trials ask. Not thread-safe: the study holds a lock."""

    _weights_looked_for = False

    @property
    def ended(self) -> int:
        """How many trials are over."""
        return self._record.state.results_seen

    @property
    def modes(self) -> Mapping[str, str]:
        """The direction of each objective; of ``default`` if there are none."""
        modes = directions_of(known_objectives(self.config.objectives))
        return modes or {"default": self.config.optimize_mode or "maximize"}

    # -- asking -----------------------------------------------------------------------------

    def ask(self, ancestor: int | StudyTrial | None, *, on_record: bool) -> StudyTrial:
        """Begin a trial: one that was enqueued, else one that the tuner proposes.

        Args:
            ancestor: whose weights it starts from; None: the tuner's choice.
            on_record: put it on record at once, if its parameters are known.
        """
        parent = None if ancestor is None else self._number(ancestor)
        self._carry_out(self._record.answer())
        self._place_queued()
        if self._started and parent is None:
            return self._enqueued()
        if parent is not None:
            self._check_parent(parent)
        number = self._open_request()
        trial = self._made(number, self._tuner.generate(number))
        trial.descend(parent)
        self._ours[number] = trial
        if self._tuner.by_run is not None:
            if self._wishes:
                wish = self._begun_wishes[number] = self._wishes.pop(0)
                trial.fixed = dict(wish.parameters)
        elif on_record:
            self._put_on_record(trial, with_weights=True)
            self._commit()
        return trial

    def _made(self, number: int, parameters: Any, **more: Any) -> StudyTrial:
        return StudyTrial(self, number, parameters, **more)

    def _open_request(self) -> TrialId:
        """The oldest request that the core has opened and that nobody answers yet."""
        state = self._record.state
        while True:
            for number in state.open:
                if number not in self._ours:
                    return number
            self._one_more_slot()

    def _place_queued(self) -> None:
        state = self._record.state
        while state.queued and not self._started:
            self._one_more_slot()

    def _enqueued(self) -> StudyTrial:
        order = self._started.popleft()
        begun = e.AttemptStarted(order.trial, order.attempt, os.getpid())
        self._carry_out(self._record.take(begun))
        self._record.commit()
        return self._on_record(self._record.state.trials[order.trial])

    def _on_record(self, record: Trial) -> StudyTrial:
        known = self._ours.get(record.id)
        if known is None or known.attempt != record.attempt:
            known = self._ours[record.id] = self._made(
                record.id,
                json.loads(record.parameters),
                attempt=record.attempt,
                on_record=True,
                parent=record.parent,
            )
        return known

    def unfinished(self) -> list[StudyTrial]:
        """The trials that were asked for and not told; of programs before this, those on record."""
        state = self._record.state
        waiting = {order.trial for order in self._started}
        begun = [self._on_record(state.trials[t]) for t in state.running if t not in waiting]
        asked = [each for each in self._ours.values() if not each.on_record]
        return sorted((*begun, *asked), key=lambda each: each.id)

    def run_again(self) -> None:
        """Give up the attempts that programs before this one began: ``ask`` hands them out anew."""
        left, self._before = self._before, frozenset()
        for number in sorted(left & self._record.state.running.keys()):
            attempt = self._record.state.trials[number].attempt
            lost = e.AttemptEnded(number, attempt, EndReason.LOST, text="its program ended")
            self._ours.pop(number, None)
            self._carry_out(self._record.take(lost))

    # -- define by run ----------------------------------------------------------------------

    def suggest(self, trial: StudyTrial, name: str, dimension: Dimension) -> Any:
        """See :meth:`.StudyTrial.suggest`.

        Args:
            trial: one of ours.
            name: of the parameter.
            dimension: the values that it may have.
        """
        with self._lock:
            return self._suggest(trial, name, dimension)

    def _suggest(self, trial: StudyTrial, name: str, dimension: Dimension) -> Any:
        fault = self._tuner.name_fault(name)
        if fault:
            raise UserError(f"the name {name!r} {fault}", hint="take another name")
        known = self._tuner.dimensions.get(name)
        if known is not None and not same_values(known, dimension):
            raise UserError(
                f"{name!r} is {known!r} in this study, and was asked for as {dimension!r}",
                hint="one name stands for one range: take another name, or begin another study",
            )
        if name in trial.values:
            return trial.values[name]
        if self._tuner.by_run is None:
            names = ", ".join(self._tuner.dimensions)
            raise UserError(
                f"the space of this study has no {name!r}; it has {names}",
                hint="add it to the space, or begin a study without one",
            )
        if trial.on_record:
            raise UserError(
                f"{name!r} is suggested too late: trial {trial.id} is on record with "
                f"{sorted(trial.values)}",
                hint="suggest all parameters before the first report and before weights",
            )
        self._begun(trial)
        value = self._by_run_value(trial, name, known or dimension)
        self._tuner.dimensions.setdefault(name, dimension)
        trial.values[name] = value
        return value

    def _by_run_value(self, trial: StudyTrial, name: str, dimension: Dimension) -> Any:
        assert self._tuner.by_run is not None
        if name not in trial.fixed:
            return self._tuner.by_run.suggest(trial.id, name, dimension)
        value = trial.fixed[name]
        if not is_legal(dimension, value):
            raise UserError(
                f"{name!r} was enqueued as {value!r}, which is outside of {dimension!r}",
                hint="enqueue a value that the trial can have",
            )
        value = as_spelt(dimension, value)
        self._tuner.by_run.fix(trial.id, name, dimension, value)
        return value

    # -- on record --------------------------------------------------------------------------

    def _begun(self, trial: StudyTrial) -> StudyTrial:
        """Return the trial if it goes on. Raises ``UserError``."""
        if self._ours.get(trial.id) is not trial:
            raise UserError(self._over(trial.id))
        return trial

    def _over(self, number: int) -> str:
        state = self._record.state
        record = state.trials.get(TrialId(number))
        if record is None or record.state is TrialState.OPEN:
            asked = [t for t, each in state.trials.items() if each.state is not TrialState.OPEN]
            numbers = f"asked for were 0 to {max(asked)}" if asked else "none was asked for yet"
            return f"this study has no trial {number}: {numbers}"
        how = record.outcome.value if record.outcome is not None else record.state.value
        return f"trial {number} is over already: {how}"

    # -- while it runs, and its end ---------------------------------------------------------

    def report(self, trial: StudyTrial, value: Any, step: int | None) -> None:
        """See :meth:`.StudyTrial.report`.

        Args:
            trial: one of ours.
            value: the metric.
            step: its number.
        """
        with self._lock:
            self._report(trial, value, step)

    def _report(self, trial: StudyTrial, value: Any, step: int | None) -> None:
        self._begun(trial)
        if step is not None:
            step = number_of_step(step)
            if trial.step is not None and step <= trial.step:
                raise UserError(
                    f"trial {trial.id} has reported step {trial.step}, and reports {step} now",
                    hint="steps go up: report each of them once",
                )
            given = dict(value) if isinstance(value, Mapping) else {"default": value}
            value = {**given, "step": step}
        text = metric_text(value)
        self._put_on_record(trial, with_weights=True)
        trial.step = step if step is not None else trial.step
        self._carry_out(self._record.take(e.MetricReported(*self._next(trial), text)))
        self._commit()

    def _mine(self, trial: int | StudyTrial) -> StudyTrial:
        """The trial that is meant, if it goes on. Raises ``UserError``."""
        self._carry_out(self._record.answer())
        number = self._number(trial)
        if isinstance(trial, StudyTrial):
            return self._begun(trial)
        known = self._ours.get(number)
        if known is not None:
            return known
        record = self._record.in_flight(number)
        if record is None:
            raise UserError(self._over(number))
        return self._on_record(record)

    def _number(self, trial: int | StudyTrial) -> int:
        """The number of one of our trials. Raises ``UserError``."""
        if not isinstance(trial, StudyTrial):
            return number_of_trial(trial)
        if trial.lead is not self:
            raise UserError(
                f"trial {trial.id} belongs to another study", hint="give a trial of this one"
            )
        return trial.id

    def tell(self, trial: int | StudyTrial, value: Any) -> None:
        """See :meth:`.Study.tell`."""
        one = self._mine(trial)
        text = metric_text(value)
        missing = lacking(text, self.config.objectives)
        if missing:
            raise InvalidMetric(
                f"the result has no number {missing!r}, which is an objective",
                hint=f"tell a mapping with {', '.join(map(repr, self.config.objectives))}",
            )
        self._put_on_record(one, with_weights=False)
        number, attempt, seq = self._next(one)
        stopped = self._record.state.trials[number].kill_reason is not None
        self._look_for_weights(one)
        reason = EndReason.SHUTDOWN if stopped else EndReason.FINISHED
        self._end(one, reason, e.FinalReported(number, attempt, seq, text))
        warn_of_unused(one)

    def fail(self, trial: int | StudyTrial, text: object) -> None:
        """See :meth:`.Study.fail`."""
        one = self._mine(trial)
        text = str(text)[:_MOST_REASON].encode("utf-8", "replace").decode()  # as a journal has it
        self._put_on_record(one, with_weights=False)
        self._end(one, EndReason.FAILED, text=text)

    # -- weights ----------------------------------------------------------------------------

    def _look_for_weights(self, trial: StudyTrial) -> None:
        """Warn once if trials are to hand on weights, and the first one that ends has saved none.

        The tuner would pass over each of them as a parent, and look like random search.
        """
        if self._weights_looked_for or "save_path" not in trial.parameters:
            return
        self._weights_looked_for = True
        if nobody_saved(self._record.state.trials.values()):
            warn(
                f"trial {trial.id} has saved no weights and becomes nobody's parent: "
                + without_parents(str(self.config.tuner.name))
            )

    def inherit(self, trial: StudyTrial, parent: int | StudyTrial) -> None:
        """See :meth:`.StudyTrial.inherit`."""
        with self._lock:
            self._inherit(trial, self._number(parent))

    def _inherit(self, trial: StudyTrial, parent: int) -> None:
        self._begun(trial)
        if trial.on_record:
            raise UserError(
                f"trial {trial.id} is on record already, and cannot change its parent",
                hint="call inherit before the first report and before weights, or ask(parent=…)",
            )
        self._check_parent(parent)
        trial.descend(parent)

    def _check_parent(self, parent: int) -> None:
        record = self._record.state.trials.get(TrialId(parent))
        if record is None or record.state is not TrialState.ENDED:
            why = "there is none" if record is None else "it was not told yet"
        elif record.verdict is None or not record.verdict.ok or record.weights is None:
            why = "it saved none" if record.success else "it failed"
        elif record.id in self._record.state.removed_weights:
            why = "they were removed"
        else:
            return
        raise UserError(
            f"trial {parent} has no weights to start from: {why}",
            hint="a parent has called save_weights, and was told",
        )

    def save(self, trial: StudyTrial, state: Any) -> str:
        """See :meth:`.StudyTrial.save_weights`."""
        with self._lock:
            at = self._place_of(trial)
        published = at.save(state)  # without the lock: it takes as long as the disk does
        with self._lock:
            self._published(trial, published)
        return published.path

    def load(self, trial: StudyTrial, into: Any, options: dict[str, Any]) -> Any:
        """See :meth:`.StudyTrial.load_weights`.

        Args:
            trial: one of ours.
            into: what to copy into.
            options: of the weight store.
        """
        if trial.parent is None:
            return None
        with self._lock:
            at = self._place_of(trial)
        return at.load(into, options)

    def _place_of(self, trial: StudyTrial) -> WeightPaths:
        """Put a trial on record, if it is not, and return the place of its weights."""
        self._begun(trial)
        self._put_on_record(trial, with_weights=True)
        self._record.commit()
        trials = self._record.state.trials
        record = trials[TrialId(trial.id)]
        above = None if record.parent is None else trials[record.parent].weights
        return WeightPaths(
            self._root,
            f"{record.id}.{record.attempt}",
            record.save_path,
            record.restore_path,
            None if above is None else above.digest,
        )

    def _published(self, trial: StudyTrial, published: Published) -> None:
        self._begun(trial)
        weights = Weights(published.digest, "bequeath", published.bytes_total)
        self._carry_out(self._record.take(e.WeightsPublished(*self._next(trial), weights)))
        self._record.commit()

    # -- before it begins -------------------------------------------------------------------

    def enqueue(self, parameters: Mapping[str, Any]) -> None:
        """See :meth:`.Study.enqueue`."""
        given = required("parameters", parameters)
        try:
            proposal = propose(0, given, self._tuner.rules)
        except Nonsense as error:
            raise UserError(f"these parameters cannot be enqueued: {error}") from None
        if self._tuner.by_run is not None:
            key = 1 + max((each.key for each in self._all_wishes()), default=-1)
            self._wishes.append(Wish(key, json.loads(proposal.parameters)))
            self._note_wishes()
            return
        why = misfit(self._tuner.space, given)
        if why:
            raise UserError(f"these parameters do not fit the space: {why}")
        proposal = propose(0, as_spelt(self._tuner.space, given), self._tuner.rules)
        number = self._record.state.next_id
        submitted = e.TrialSubmitted(proposal.parameters, save_path=f"trials/{number}")
        self._carry_out(self._record.take(submitted))
        self._record.commit()

    def warm_start(self, results: FoundResults) -> WarmStart:
        """See :meth:`.Study.warm_start`."""
        space = None if self._tuner.by_run is not None else self._tuner.space
        rows, report = fitting(results, space, self.config.objectives)
        if rows:
            self._carry_out(self._record.answer())
            self._carry_out(self._record.take(e.DataImported(json.dumps(rows))))
            self._record.commit(durable=True)
        return report
