"""Grid search: every combination once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from tuners.base import Tuner
from tuners.errors import NoMoreTrialError
from tuners.space import Space, grid, parse


class GridSearchTuner(Tuner):
    """Walks through the search space in a fixed order, coarse before fine.

    A change of the search space starts the walk anew.
    """

    def __init__(self) -> None:
        self._space = Space(())
        self._points: Iterator[dict[str, Any]] = iter(())
        self._issued = 0

    def update_search_space(self, search_space: Any) -> None:
        """Takes the space; raises SpaceError when it cannot be read."""
        space = parse(search_space)
        with self.lock:
            if space != self._space or not self._issued:
                self._space, self._points, self._issued = space, grid(space), 0

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Returns the next point; never blocks.

        Raises:
            NoMoreTrialError: every point was issued.
        """
        with self.lock:
            point = next(self._points, None)
            if point is None:
                raise NoMoreTrialError(f"all {self._issued} points of the grid were issued")
            self._issued += 1
            return point

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """Learns nothing."""

    def state(self) -> dict[str, Any]:
        """How many points were issued; the order does the rest."""
        with self.lock:
            return {"issued": self._issued}

    def restore(self, state: Any) -> None:
        """Skips what was issued; call after ``update_search_space``."""
        with self.lock:
            self._issued = int(state["issued"])
            self._points = islice(grid(self._space), self._issued, None)

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Skips one more point."""
        with self.lock:
            self._issued += 1
            next(self._points, None)
