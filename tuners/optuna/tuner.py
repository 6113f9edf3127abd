"""Any sampler of Optuna as a tuner, through ask and tell."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tuners import space as spaces
from tuners import values
from tuners.base import Tuner
from tuners.errors import NoMoreTrialError
from tuners.optuna import mapping
from tuners.optuna.library import FROM_RESULTS, history_of, make_sampler, optuna, sampler_class
from tuners.optuna.limits import BEYOND, beyond_of, check_objectives, searchable, too_long, unfit
from tuners.pareto import Objectives
from tuners.space.model import Dimension

#: How often a restored sampler is asked again for what it proposed in another order.
_TRIES = 4

#: Proposals that may miss the constraints before one is drawn at random and shown to the sampler.
_MOST_ASKED = 20

#: Stands for a trial of another experiment while the study takes it in: no trial of ours has it.
_IMPORTED = -1


class OptunaTuner(Tuner):
    """One of Optuna's samplers. Thread-safe; never waits; does not inherit weights.

    Akiba, Sano, Yanase, Ohta, Koyama: Optuna: A Next-generation Hyperparameter Optimization
    Framework, KDD 2019; the papers of samplers are named by Optuna.

    The sampler sees one study in memory (``study``): a request asks, a result tells. Trials
    that failed, or reported NaN or infinity, count as failed; those that users proposed by hand
    are told if they lie in the search space. In serial use the proposals are those that a plain
    ``study.ask`` with the same seed makes.

    Beyond ``history`` trials the sampler no longer sees all of them: three quarters are gone on
    with (a third of these the best, the others the latest), by a sampler made anew with a seed of
    its own, and so on whenever ``history`` is reached again. Time and memory stop growing there,
    and the proposals are no longer those of a plain study, which sees everything. A restart repeats
    what was asked and told since the last such moment, in the same order, so that the sampler is in
    the same state afterwards; that costs what the asking cost.

    Args:
        sampler: name of the class in ``optuna.samplers``, such as ``TPESampler``; ``TPE`` will do.
        sampler_args: its arguments. Those that are objects of Optuna's (``independent_sampler``,
            ``crossover``, …) are written as a name, or as ``{"name": …}`` with arguments.
        optimize_mode: ``maximize`` or ``minimize``; of no meaning with ``objectives``.
        objectives: numbers of the final result, their modes and bounds, such as ``{"default":
            "maximize", "latency_ms": "minimize <= 50"}``, for samplers that take several, or bounds
            (``constraints_func``); None: ``default`` alone.
        seed: of the sampler, if it takes one; null draws one.
        history: how many trials that are over the sampler sees at most, four times its
            ``n_startup_trials``, ``population_size`` and ``popsize`` at least; null: 1,000, for
            ``GPSampler`` 200, or that least number. ``BruteForceSampler`` sees all.
    """

    def __init__(
        self,
        sampler: str = "TPESampler",
        sampler_args: Mapping[str, Any] | None = None,
        optimize_mode: str = "maximize",
        objectives: Mapping[str, str] | None = None,
        seed: int | None = 0,
        history: int | None = None,
    ) -> None:
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self.objectives = Objectives.of(objectives or {"default": self.optimize_mode})
        self.seed = values.seed(seed)
        self.sampler = sampler_class(sampler).__name__
        self.sampler_args = values.mapping("sampler_args", sampler_args)
        check_objectives(self.sampler, self.objectives)
        self.history = history_of(self.sampler, self.sampler_args, history)
        self._written: Any = {}  # the search space, as JSON
        self._space = spaces.Space(())
        self._axes: tuple[mapping.OptunaAxis, ...] = ()
        self._by_name: dict[str, mapping.OptunaAxis] = {}  # of parameters suggested one by one
        self._suggesting: dict[int, Any] = {}  # trials whose parameters are
        self._begin()

    def handles(self, search_space: Any) -> str:
        """The reason why this sampler cannot search that space; empty if it can."""
        try:
            axes = mapping.axes_of(spaces.parse(search_space))
        except spaces.SpaceError as error:
            return error.sentence
        return unfit(self.sampler, axes)

    def update_search_space(self, search_space: Any) -> None:
        """Takes the space for what is asked from now on; raises SpaceError if it is unreadable."""
        written = spaces.as_json(search_space)
        space = spaces.parse(written)
        axes = mapping.axes_of(space)
        with self.lock:
            self._written, self._space, self._axes = written, space, axes
            self._log.append(["space", written])

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Asks the sampler; other requests and results wait as long as it computes.

        Raises:
            NoMoreTrialError: a sampler that enumerates has nothing left.
        """
        with self.lock:
            if self._exhausted:
                raise NoMoreTrialError(f"{self.sampler} has been through all there is")
            return self._ask(parameter_id)

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; tells the sampler of the result."""
        with self.lock:
            if parameter_id not in self._numbers and isinstance(parameters, Mapping):
                self._take_in(parameter_id, parameters)
            self._tell(parameter_id, *self._read(value))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Tells the sampler of a trial that had no result."""
        with self.lock:
            if not success:
                self._tell(parameter_id, None)
            self._numbers.pop(parameter_id, None)
            self._suggesting.pop(parameter_id, None)

    def begin_trial(self, parameter_id: int) -> None:
        """Begins a trial whose parameters are suggested one by one; see :class:`.Suggesting`."""
        with self.lock:
            if self._exhausted:
                raise NoMoreTrialError(f"{self.sampler} has been through all there is")
            if self.history and self._history.finished >= self.history:
                self._fold()
            trial = self._suggesting[parameter_id] = self.study.ask()
            self._numbers[parameter_id] = trial.number

    def suggest(self, parameter_id: int, name: str, dimension: Dimension) -> Any:
        """Suggests one parameter of a trial that has begun; see :class:`.Suggesting`.

        Args:
            parameter_id: the trial.
            name: of the parameter.
            dimension: its values.
        """
        with self.lock:
            trial = self._suggesting_trial(parameter_id)
            axis = searchable(self.sampler, self._axis(name, dimension))
            return mapping.suggest((axis,), trial)[name]

    def fix(self, parameter_id: int, name: str, dimension: Dimension, value: Any) -> None:
        """Shows the sampler a parameter that it did not suggest; see :class:`.Suggesting`.

        Args:
            parameter_id: the trial.
            name: of the parameter.
            dimension: its values.
            value: one of them.
        """
        axis = searchable(self.sampler, self._axis(name, dimension))
        axis, theirs = mapping.to_optuna((axis,), {name: value})[name]
        given = mapping.distribution(axis, optuna().distributions)
        with self.lock:
            number = self._suggesting_trial(parameter_id).number
            self._history.set_trial_param(number, name, given.to_internal_repr(theirs), given)

    def go_on_behind(self, trials: int) -> bool:
        """Draws new numbers after a restart, if it can; see :class:`.Suggesting`."""
        if self.sampler not in FROM_RESULTS:
            return False
        with self.lock:
            self._begin({"round": trials, "under way": [], "study": self._history.written()})
        return True

    def show_trial(
        self, parameter_id: int, parameters: Mapping[str, Any], space: spaces.Space
    ) -> bool:
        """Shows the sampler a whole trial that it did not suggest; see :class:`.Suggesting`.

        Args:
            parameter_id: the trial.
            parameters: all that it has.
            space: of these.
        """
        axes = tuple(self._axis(name, dimension) for name, dimension in space.dimensions)
        if too_long(self.sampler, axes):
            return False  # it would come to grief at the next request
        with self.lock:
            number = self._shown(parameters, axes)
            if number is not None:
                self._numbers[parameter_id] = number
            return number is not None

    def _axis(self, name: str, dimension: Dimension) -> mapping.OptunaAxis:
        known = self._by_name.get(name)
        if known is None or known.dimension is not dimension:
            (known,) = mapping.axes_of(spaces.Space(((name, dimension),)))
            self._by_name[name] = known
        return known

    def _suggesting_trial(self, parameter_id: int) -> Any:
        """The sampler's own trial, of the study that there is now."""
        trial = self._suggesting[parameter_id]
        if trial.study is not self.study:  # trials were dropped since it began
            trial = optuna().trial.Trial(self.study, self._numbers[parameter_id])
            self._suggesting[parameter_id] = trial
        return trial

    def import_data(self, data: Sequence[dict[str, Any]]) -> str | None:
        """Tells the sampler of results of another experiment, those in the search space."""
        outside = 0
        with self.lock:
            for row in data:
                (numbers, beyond), parameters = self._read(row["value"]), row["parameter"]
                if numbers is not None and isinstance(parameters, Mapping):
                    self._take_in(_IMPORTED, parameters)
                if _IMPORTED in self._numbers:
                    self._tell(_IMPORTED, numbers, beyond)
                else:
                    outside += 1
        return (
            f"{outside} of {len(data)} imported results are no numbers, or their parameters lie "
            "outside of the search space: the sampler does not see them"
            if outside
            else None
        )

    def state(self) -> dict[str, Any]:
        """The log of asks and tells since trials were last dropped: some 30 bytes a trial."""
        with self.lock:
            return {"seed": self.seed, "kept": self._kept, "log": list(self._log)}

    def restore(self, state: Any) -> None:
        """Asks and tells the same again, in the same order."""
        with self.lock:
            self.seed = state["seed"]
            written = self._written
            self._begin(state.get("kept"))
            for what, *details in state["log"]:
                if what == "space":
                    self._take_space(details[0])
                    self._log.append([what, *details])
                elif what == "ask":
                    self._ask(details[0])
                elif what == "take":
                    self._take_in(*details)
                else:
                    self._tell(*details)
            if self._written != written:
                self._take_space(written)
                self._log.append(["space", written])

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Asks the same again.

        Requests that overlapped may have been asked in another order than they were answered in: a
        proposal that the sampler makes now is kept for the request that had these parameters.
        """
        if not isinstance(parameters, Mapping):
            return
        known = {axis.key: parameters.get(axis.key) for axis in self._axes}
        with self.lock:
            for _ in range(_TRIES):
                number = self._spare(known)
                if number is not None:
                    self._log.append(["ask", parameter_id])
                    self._numbers[parameter_id] = number
                    return
                if self._exhausted:
                    break
                self._suggest()
            self._take_in(parameter_id, parameters)

    # ---- all with the lock held --------------------------------------------------------------

    def _begin(self, kept: Mapping[str, Any] | None = None) -> None:
        """Makes the study, with what was kept of one before it."""
        library = optuna()
        from tuners.optuna.history import History

        self._log: list[list[Any]] = []
        self._kept = kept
        self._round = 0 if kept is None else int(kept["round"])
        self._numbers: dict[int, int] = {}  # trials under way → their numbers in the study
        self._spares: list[tuple[dict[str, Any], int]] = []  # asked for, and no request's yet
        self._exhausted = False
        self._history = History()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.study = library.create_study(
                storage=self._history,
                directions=[mode for _, mode in self.objectives.modes],
                sampler=make_sampler(
                    self.sampler,
                    self.sampler_args,
                    self.seed or 0,
                    again=self._round,
                    constraints=beyond_of if self.objectives.bounded else None,
                ),
            )
        if kept is not None:
            self._numbers = {int(own): int(number) for own, number in kept["under way"]}
            self._history.read(kept["study"])

    def _fold(self) -> None:
        """Goes on with a part of the trials and a fresh sampler, as a restart from here would."""
        quarter = self.history // 4
        under_way = dict(self._numbers)
        self._history.forget(quarter, self.history - 2 * quarter, set(under_way.values()))
        self._begin(
            {
                "round": self._round + 1,
                "under way": sorted(under_way.items()),
                "study": self._history.written(),
            }
        )
        self._log.append(["space", self._written])

    def _ask(self, parameter_id: int) -> dict[str, Any]:
        parameters, number = self._suggest()
        self._spares.pop()
        self._numbers[parameter_id] = number
        self._log.append(["ask", parameter_id])
        return parameters

    def _suggest(self) -> tuple[dict[str, Any], int]:
        if self.history and self._history.finished >= self.history:
            self._fold()
        parameters, number = self._fitting()
        self._spares.append((parameters, number))
        return parameters, number

    def _fitting(self) -> tuple[dict[str, Any], int]:
        """Asks until the constraints hold; what misses them fails, as the sampler sees it."""
        for _ in range(_MOST_ASKED):
            trial = self.study.ask()
            parameters = mapping.suggest(self._axes, trial)
            if self._space.admits(parameters):
                return parameters, trial.number
            try:
                self.study.tell(trial.number, state=optuna().trial.TrialState.FAIL)
            except RuntimeError as error:  # nothing is left, see _tell
                self._exhausted = True
                raise NoMoreTrialError(f"{self.sampler} has been through all there is") from error
        rng = self.rng(self._history.newest, "fitting")
        parameters = spaces.sample(self._space, rng)
        number = self._shown(parameters)
        assert number is not None  # drawn from the space
        return parameters, number

    def _take_space(self, written: Any) -> None:
        self._written, self._space = written, spaces.parse(written)
        self._axes = mapping.axes_of(self._space)

    def _spare(self, parameters: Mapping[str, Any]) -> int | None:
        for place, (own, number) in enumerate(self._spares):
            if own == parameters:
                del self._spares[place]
                return number
        return None

    def _tell(
        self, parameter_id: int, numbers: list[float] | None, beyond: Sequence[float] = ()
    ) -> None:
        number = self._numbers.pop(parameter_id, None)
        if number is None:
            return
        self._log.append(["tell", parameter_id, numbers, *([list(beyond)] if beyond else [])])
        if beyond:
            self._history.set_trial_user_attr(number, BEYOND, list(beyond))
        states = optuna().trial.TrialState
        try:
            if numbers is None:
                self.study.tell(number, state=states.FAIL)
            else:
                self.study.tell(number, numbers)
        except RuntimeError:
            # A sampler that has nothing left stops the study, which nobody but Optuna's own loop
            # may do; the result was taken in before.
            self._exhausted = True

    def _take_in(self, parameter_id: int, parameters: Mapping[str, Any]) -> None:
        """Show the sampler a trial that it did not suggest, if it lies in the space."""
        number = self._shown(parameters)
        if number is None:
            return
        self._numbers[parameter_id] = number
        own = {axis.key: parameters[axis.key] for axis in self._axes}
        self._log.append(["take", parameter_id, own])

    def _shown(
        self, parameters: Mapping[str, Any], axes: tuple[mapping.OptunaAxis, ...] | None = None
    ) -> int | None:
        """The number of a trial that the sampler did not suggest; None: it is not in the space."""
        library = optuna()
        try:
            found = mapping.to_optuna(self._axes if axes is None else axes, parameters)
            trial = library.create_trial(
                state=library.trial.TrialState.RUNNING,
                params={name: value for name, (_, value) in found.items()},
                distributions={
                    name: mapping.distribution(axis, library.distributions)
                    for name, (axis, _) in found.items()
                },
            )
        except ValueError:  # outside of the bounds, or between two steps
            return None
        self.study.add_trial(trial)
        return self._history.newest

    def _read(self, value: Any) -> tuple[list[float] | None, tuple[float, ...]]:
        """The objectives, each in its own sense, None when one is NaN or infinite; and how far the
        result is beyond each bound."""
        point, beyond = self.objectives.point(value), self.objectives.beyond(value)
        if point is None or not all(map(math.isfinite, beyond)):
            return None, ()
        signs = [1 if mode == "maximize" else -1 for _, mode in self.objectives.modes]
        return [sign * number for sign, number in zip(signs, point, strict=True)], beyond
