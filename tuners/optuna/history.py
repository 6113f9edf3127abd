"""The history that a sampler sees: one study's trials, of which only so many are kept.

Optuna's own storage keeps every trial, and samplers look through all of them at each request: the
time of a request and the memory grow for ever. This storage can :meth:`~History.forget` and, unlike
Optuna's in memory, be written as JSON and read again. Until something is forgotten a sampler sees
in it what it sees in Optuna's own.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Container, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    check_distribution_compatibility,
    distribution_to_json,
    json_to_distribution,
)
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from tuners.pareto import best_first, excess

_STUDY = 0
_NAME = "bequeath"

#: From this size on (characters) texts that a sampler notes beside a trial are a state of its own,
#: of which only the newest is read: CMA-ES keeps its matrix so, once a generation.
_LONG = 256

#: Notes of a study that genetic samplers write, one a generation, and how many of these stay.
_OF_A_GENERATION = re.compile(r"(.*:)(\d+)")
_GENERATIONS = 3

#: Optuna notes here how far a trial is beyond each bound.
_BOUNDS = "constraints"


class _Trial(FrozenTrial):
    """A trial whose constraints are worked out once: TPE asks all trials for theirs at each
    request, which is an eighth of its time."""

    @cached_property
    def constraints(self) -> dict[str, float]:
        """See :attr:`.FrozenTrial.constraints`."""
        return super().constraints

    @classmethod
    def like(cls, other: FrozenTrial) -> _Trial:
        """A trial that shares what the other one holds, and may be changed."""
        made = cls.__new__(cls)
        made.__dict__.update(other.__dict__)
        made.__dict__.pop("constraints", None)
        return made


class History(BaseStorage):
    """Holds one study; a trial's id is its number. For one thread at a time."""

    def __init__(self) -> None:
        self._trials: dict[int, FrozenTrial] = {}  # by number, in order
        self._directions: list[StudyDirection] = []
        self._notes: dict[str, Any] = {}
        self._known: dict[str, BaseDistribution] = {}  # of each parameter, the latest
        self._next = 0
        self._finished = 0

    # ---- beyond Optuna's --------------------------------------------------------------------

    @property
    def newest(self) -> int:
        """The number of the trial that was begun last; -1: none."""
        return self._next - 1

    @property
    def finished(self) -> int:
        """The number of kept trials that are over."""
        return self._finished

    def forget(self, best: int, latest: int, under_way: Container[int]) -> None:
        """Keeps some trials, and forgets the rest.

        Kept are the best ones, the latest that are over, those under way, and those that the
        sampler's newest notes name, such as the parents of a generation.

        Args:
            best: how many; of several objectives by non-domination and crowding, those that keep
                their bounds first.
            latest: how many.
            under_way: numbers of those whose results are still to come.
        """
        self._notes = dict(self._newest_notes())
        over = [one for one in self._trials.values() if one.state.is_finished()]
        kept = {one.number for one in over[-latest:]} | set(_numbers_in(self._notes.values()))
        kept |= {one.number for one in self._best(over, best)}
        self._trials = {
            number: trial
            for number, trial in self._trials.items()
            if number in kept or (number in under_way and not trial.state.is_finished())
        }
        self._finished = sum(one.state.is_finished() for one in self._trials.values())
        self._drop_old_states()

    def written(self) -> dict[str, Any]:
        """All of it as JSON; :meth:`read` takes it."""
        shapes: list[list[list[str]]] = []  # names and distributions that trials have in common
        rows = []
        for trial in self._trials.values():
            shape = [[name, distribution_to_json(d)] for name, d in trial.distributions.items()]
            if shape not in shapes:
                shapes.append(shape)
            numbers = [
                d.to_internal_repr(trial.params[name]) for name, d in trial.distributions.items()
            ]
            state, results = trial.state.name, trial.values
            rows.append(
                [trial.number, state, results, shapes.index(shape), numbers, trial.system_attrs]
            )
        return {"next": self._next, "notes": self._notes, "shapes": shapes, "trials": rows}

    def read(self, written: dict[str, Any]) -> None:
        """Takes over what :meth:`written` returned; the study's directions stay."""
        shapes = [
            {name: json_to_distribution(text) for name, text in shape}
            for shape in written["shapes"]
        ]
        self._trials, self._notes = {}, dict(written["notes"])
        for number, state, results, shape, numbers, attributes in written["trials"]:
            trial = _begun(number)
            trial.state = TrialState[state]
            trial.distributions = dict(shapes[shape])
            trial.params = {
                name: distribution.to_external_repr(internal)
                for (name, distribution), internal in zip(
                    shapes[shape].items(), numbers, strict=True
                )
            }
            trial.system_attrs = dict(attributes)
            if results is not None:
                trial.values = results
            if trial.state.is_finished():
                trial.datetime_complete = trial.datetime_start
            self._trials[number] = trial
            self._known.update(trial.distributions)
        self._next = written["next"]
        self._finished = sum(one.state.is_finished() for one in self._trials.values())

    def _best(self, over: list[FrozenTrial], count: int) -> list[FrozenTrial]:
        complete = [one for one in over if one.state is TrialState.COMPLETE and one.values]
        signs = [1 if way is StudyDirection.MAXIMIZE else -1 for way in self._directions]
        points = [
            tuple(sign * value for sign, value in zip(signs, one.values, strict=True))
            for one in complete
        ]
        far = [excess(one.system_attrs.get(_BOUNDS) or ()) for one in complete]
        if len(signs) > 1:
            return [complete[place] for place in best_first(points, far)[:count]]
        order = sorted(range(len(complete)), key=lambda place: (far[place], -points[place][0]))
        return [complete[place] for place in order[:count]]

    def _newest_notes(self) -> Iterator[tuple[str, Any]]:
        last: dict[str, int] = {}
        for key in self._notes:
            if found := _OF_A_GENERATION.fullmatch(key):
                last[found[1]] = max(int(found[2]), last.get(found[1], 0))
        for key, value in self._notes.items():
            found = _OF_A_GENERATION.fullmatch(key)
            if found is None or int(found[2]) > last[found[1]] - _GENERATIONS:
                yield key, value

    def _drop_old_states(self) -> None:
        has_newest = False
        for number, trial in reversed(self._trials.items()):
            texts = {key: x for key, x in trial.system_attrs.items() if isinstance(x, str)}
            if (
                trial.state is not TrialState.COMPLETE
                or max(map(len, texts.values()), default=0) < _LONG
            ):
                continue
            if has_newest:
                changed = _Trial.like(trial)
                changed.system_attrs = {
                    key: value for key, value in trial.system_attrs.items() if key not in texts
                }
                self._trials[number] = changed
            has_newest = True

    # ---- Optuna's interface: of trials ------------------------------------------------------

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """Begins a trial, or takes in the one given."""
        trial = _begun(0) if template_trial is None else _Trial.like(copy.deepcopy(template_trial))
        trial.number = trial._trial_id = self._next
        self._trials[trial.number] = trial
        self._known.update(trial.distributions)
        self._finished += trial.state.is_finished()
        self._next += 1
        return trial.number

    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        """See :meth:`.BaseStorage.set_trial_param`; raises ValueError for a distribution that
        cannot be another trial's as well."""
        if param_name in self._known:
            check_distribution_compatibility(self._known[param_name], distribution)
        self._known[param_name] = distribution
        changed = self._changing(trial_id)
        external = distribution.to_external_repr(param_value_internal)
        changed.params = {**changed.params, param_name: external}
        changed.distributions = {**changed.distributions, param_name: distribution}

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """See :meth:`.BaseStorage.set_trial_state_values`; no trial waits to be begun."""
        changed = self._changing(trial_id)
        if state is TrialState.RUNNING:
            return False
        changed.state = state
        if values is not None:
            changed.values = list(values)
        if state.is_finished():
            changed.datetime_complete = _now()
            self._finished += 1
        return True

    def set_trial_intermediate_value(
        self, trial_id: int, step: int, intermediate_value: float
    ) -> None:
        """See :meth:`.BaseStorage.set_trial_intermediate_value`; pruners have their own study."""
        changed = self._changing(trial_id)
        changed.intermediate_values = {**changed.intermediate_values, step: intermediate_value}

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        """See :meth:`.BaseStorage.set_trial_user_attr`."""
        changed = self._changing(trial_id)
        changed.user_attrs = {**changed.user_attrs, key: value}

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """See :meth:`.BaseStorage.set_trial_system_attr`; samplers write such notes."""
        changed = self._changing(trial_id)
        changed.system_attrs = {**changed.system_attrs, key: value}

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """Raises KeyError for one that was forgotten."""
        return self._trials[trial_id]

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        """The same number."""
        return self._trials[trial_number].number

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """See :meth:`.BaseStorage.get_all_trials`; the trials that are kept, in order."""
        if states == (TrialState.WAITING,):
            return []  # asked for at each request
        found = [one for one in self._trials.values() if states is None or one.state in states]
        return copy.deepcopy(found) if deepcopy else found

    def _changing(self, number: int) -> FrozenTrial:
        """A copy in place of a trial; holders of an earlier list do not see its changes."""
        trial = self._trials[number]
        self.check_trial_is_updatable(number, trial.state)
        changed = self._trials[number] = _Trial.like(trial)
        return changed

    # ---- Optuna's interface: of the study ---------------------------------------------------

    def create_new_study(
        self, directions: Sequence[StudyDirection], study_name: str | None = None
    ) -> int:
        """There is one."""
        self._directions = list(directions)
        return _STUDY

    def delete_study(self, study_id: int) -> None:
        """Forgets everything."""
        self._trials, self._notes, self._known = {}, {}, {}

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        """See :meth:`.BaseStorage.set_study_user_attr`; dropped, as nothing reads them."""

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        """See :meth:`.BaseStorage.set_study_system_attr`; samplers write such notes."""
        self._notes = {**self._notes, key: value}

    def get_study_id_from_name(self, study_name: str) -> int:
        """There is one."""
        return _STUDY

    def get_study_name_from_id(self, study_id: int) -> str:
        """There is one."""
        return _NAME

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        """One for each objective."""
        return self._directions

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        """Always empty."""
        return {}

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """The notes of samplers."""
        return self._notes

    def get_all_studies(self) -> list[Any]:
        """Always empty: nothing looks through this storage."""
        return []


def _begun(number: int) -> _Trial:
    return _Trial(
        number=number,
        trial_id=number,
        state=TrialState.RUNNING,
        value=None,
        datetime_start=_now(),
        datetime_complete=None,
        params={},
        distributions={},
        user_attrs={},
        system_attrs={},
        intermediate_values={},
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _numbers_in(values: Any) -> Iterator[int]:
    """Whole numbers in lists, which may be trials' numbers."""
    for value in values:
        if isinstance(value, list | tuple):
            for one in value:
                if isinstance(one, int):
                    yield one
            yield from _numbers_in(value)
