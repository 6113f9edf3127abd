"""Parameters that are suggested one by one, while the program that asks for them runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from tuners import values
from tuners.arguments import legal_arguments
from tuners.base import Tuner
from tuners.builtin import builtin_tuner, make_builtin
from tuners.errors import TunerArgumentError
from tuners.space import Space, SpaceError, parse
from tuners.space.model import BlockList, Dimension

_LISTS = "take tuner='Random', or give the study a search space with bq.blocks"


@runtime_checkable
class Suggesting(Protocol):
    """A tuner whose trials may begin without parameters and get them one by one."""

    def begin_trial(self, parameter_id: int) -> None:
        """Begins a trial without parameters. Raises NoMoreTrialError."""

    def suggest(self, parameter_id: int, name: str, dimension: Dimension) -> Any:
        """Suggests one more parameter of a trial that has begun.

        Args:
            parameter_id: the trial.
            name: of the parameter.
            dimension: the values that it may have.
        """

    def fix(self, parameter_id: int, name: str, dimension: Dimension, value: Any) -> None:
        """Takes a parameter that was not suggested. Raises ValueError outside of the dimension.

        Args:
            parameter_id: the trial, which has begun.
            name: of the parameter.
            dimension: the values that it may have.
            value: the one that it has.
        """

    def go_on_behind(self, trials: int) -> bool:
        """Prepares for numbers behind those of trials before a restart, which are shown next.

        Args:
            trials: how many there were.

        Returns:
            False if they have to be suggested once more, in their order, in place of being shown.
        """

    def show_trial(self, parameter_id: int, parameters: Mapping[str, Any], space: Space) -> bool:
        """Takes a whole trial that it did not suggest; a result may follow. False: it does not fit.

        Args:
            parameter_id: the trial.
            parameters: all that it has.
            space: these parameters, and no others.
        """


class ByRunTuner(Tuner):
    """Lets a built-in tuner suggest parameters while the trial runs that asks for them.

    It is the tuner of a study without a search space. The space grows: each name stands for one
    range from its first suggestion on.

    Args:
        tuner: ``Random``, or one of Optuna's samplers: ``TPE``, ``CMA-ES``, ``GP``, ``QMC``,
            ``NSGA-II``, ``NSGA-III``, or ``Optuna`` with a ``sampler``.
        tuner_args: its own arguments.
        optimize_mode: ``maximize`` or ``minimize``; of no meaning with ``objectives``.
        seed: of that tuner, if its arguments have none.
        objectives: numbers of the result, their modes and bounds, for samplers that take several;
            Random needs none.
    """

    def __init__(
        self,
        tuner: str = "TPE",
        tuner_args: Mapping[str, Any] | None = None,
        optimize_mode: str = "maximize",
        seed: int | None = 0,
        objectives: Mapping[str, str] | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "optimize_mode": values.optimize_mode(optimize_mode),
            "seed": values.seed(seed),
        }
        owner = builtin_tuner(tuner)
        if objectives is not None and "objectives" in legal_arguments(owner):
            given["objectives"] = objectives
        if not issubclass(owner, Suggesting):
            raise TunerArgumentError(
                f"{tuner} cannot suggest parameters one by one: it needs a search space.",
                "Give the study a space, or take Random, TPE or another sampler of Optuna's.",
            )
        made = make_builtin(tuner, {**given, **(tuner_args or {})})
        assert isinstance(made, Suggesting)
        self.sampler = made
        self._inner: Tuner = made
        self.dimensions: dict[str, Dimension] = {}  #: of each name so far
        self._shows = True  # trials of before a restart; else they are suggested again

    def update_search_space(self, search_space: Any) -> None:
        """Takes the space as it has grown until now."""
        self.dimensions = dict(parse(search_space).dimensions)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Begins a trial: it has no parameters yet."""
        self.sampler.begin_trial(parameter_id)
        return {}

    def suggest(self, parameter_id: int, name: str, dimension: Dimension) -> Any:
        """Suggests one parameter of a trial that has begun.

        Args:
            parameter_id: the trial.
            name: of the parameter.
            dimension: the values that it may have.
        """
        try:
            return self.sampler.suggest(parameter_id, name, dimension)
        except SpaceError as error:
            if isinstance(dimension, BlockList):  # most tuners of lists need a space
                raise SpaceError(error.path, error.message, _LISTS) from error
            raise

    def fix(self, parameter_id: int, name: str, dimension: Dimension, value: Any) -> None:
        """Takes a parameter that somebody has chosen. Raises ValueError outside of the dimension.

        Args:
            parameter_id: the trial, which has begun.
            name: of the parameter.
            dimension: the values that it may have.
            value: the one that it has.
        """
        self.sampler.fix(parameter_id, name, dimension, value)

    def go_on_behind(self, trials: int) -> None:
        """Begins to go on where a study was.

        Args:
            trials: how many :meth:`recall_trial` will name.
        """
        self._shows = self.sampler.go_on_behind(trials)

    def recall_trial(self, parameter_id: int, parameters: Mapping[str, Any]) -> None:
        """Takes a trial that was suggested before, so that the next ones are none of before."""
        if self._shows or not all(name in self.dimensions for name in parameters):
            self.show_trial(parameter_id, parameters)
            return
        self.sampler.begin_trial(parameter_id)
        try:
            for name, value in parameters.items():
                dimension = self.dimensions[name]
                if self.sampler.suggest(parameter_id, name, dimension) != value:
                    self.sampler.fix(parameter_id, name, dimension, value)
        except ValueError:  # of a record whose values this version would not propose
            self._inner.trial_end(parameter_id, False)

    def show_trial(self, parameter_id: int, parameters: Mapping[str, Any]) -> bool:
        """Takes a whole trial of before; false if a name is unknown or a value does not fit."""
        if not all(name in self.dimensions for name in parameters):
            return False
        space = Space(tuple((name, self.dimensions[name]) for name in parameters))
        return self.sampler.show_trial(parameter_id, parameters, space)

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`."""
        self._inner.receive_trial_result(parameter_id, parameters, value)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """See :meth:`.Tuner.trial_end`."""
        self._inner.trial_end(parameter_id, success)
