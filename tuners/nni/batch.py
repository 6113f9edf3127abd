"""A list of parameters, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuners import space as spaces
from tuners import values
from tuners.base import Tuner
from tuners.errors import NoMoreTrialError
from tuners.space.model import Choice


class BatchTuner(Tuner):
    """Runs each option of the one choice in the search space, once, in the order of the file.

    The options are the parameters themselves, mappings; the name of the choice does not appear.
    The *n*-th option belongs to the *n*-th request.

    Args:
        optimize_mode: ignored, taken so that files can name it.
    """

    def __init__(self, optimize_mode: str = "maximize") -> None:
        values.optimize_mode(optimize_mode)
        self._options: tuple[Any, ...] = ()
        self._given: set[int] = set()

    def handles(self, search_space: Any) -> str:
        """The reason why these are no parameters one after the other; empty if they are."""
        if not isinstance(search_space, Mapping) or len(search_space) != 1:
            return "Batch needs a search space with one choice, whose options are the parameters."
        ((name, dimension),) = spaces.parse(search_space).dimensions
        if not isinstance(dimension, Choice):
            return f"{name!r} must be a choice without '_name', whose options are the parameters."
        for option in dimension.options:
            if not isinstance(option, Mapping):
                return f"an option of {name!r} is no mapping of parameters: {option!r}"
        return ""

    def update_search_space(self, search_space: Any) -> None:
        """Takes the list; what was run of it is not run again. Raises SpaceError."""
        refusal = self.handles(search_space)
        if refusal:
            raise spaces.SpaceError((), refusal)
        ((_, dimension),) = spaces.parse(search_space).dimensions
        assert isinstance(dimension, Choice)
        with self.lock:
            self._options = tuple(dimension.options)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Returns the next option; never blocks.

        Raises:
            NoMoreTrialError: all were returned.
        """
        with self.lock:
            left = (place for place in range(len(self._options)) if place not in self._given)
            place = next(left, None)
            if place is None:
                raise NoMoreTrialError(f"all {len(self._options)} sets of parameters were run")
            self._given.add(place)
            return dict(self._options[place])

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; learns nothing."""

    def import_data(self, data: Sequence[dict[str, Any]]) -> str | None:
        """Skips what another experiment has run."""
        for row in data:
            self.restore_proposal(-1, row["parameter"])
        return None

    def state(self) -> dict[str, Any]:
        """The options that were returned."""
        with self.lock:
            return {"given": sorted(self._given)}

    def restore(self, state: Any) -> None:
        """Skips what was returned."""
        with self.lock:
            self._given = {int(place) for place in state["given"]}

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Skips one more: the first that looks like it."""
        with self.lock:
            for place, option in enumerate(self._options):
                if place not in self._given and dict(option) == parameters:
                    self._given.add(place)
                    return
