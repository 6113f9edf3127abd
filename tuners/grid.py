"""Grid search: every combination once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tuners.base import Tuner
from tuners.errors import NoMoreTrialError
from tuners.space import Space, grid, parse
from tuners.space.lattice import endless


class GridSearchTuner(Tuner):
    """Walks through the search space in a fixed order, coarse before fine.

    Of equally fine points those that follow one another lie far apart: a search cut half way has
    tried every option of a choice, with some of every other one's. The *n*-th point belongs to the
    *n*-th request, whichever of two requests at the same time is faster. Points of numbers that
    were never asked for (trials by hand, requests that failed) are issued at the end. A change of
    the search space starts the walk anew.
    """

    def __init__(self) -> None:
        self._begin(Space(()), 0)

    def handles(self, search_space: Any) -> str:
        """Whether there is a point at all, and no list of blocks without end."""
        space = parse(search_space)
        if not space.dimensions:
            return "the search space is empty, and a grid of it has no point."
        return endless(space)

    def update_search_space(self, search_space: Any) -> None:
        """Takes the space; raises SpaceError when it cannot be read."""
        space = parse(search_space)
        with self.lock:
            if space != self._space:
                self._begin(space, None if self._next else 0)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Returns the request's own point; never blocks.

        Raises:
            NoMoreTrialError: every point was issued.
        """
        with self.lock:
            point = self._take(parameter_id)
            if point is None:
                raise NoMoreTrialError(f"all {self._next} points of the grid were issued")
            return point

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; learns nothing."""

    def state(self) -> dict[str, Any]:
        """The length of the walk so far, and the points left out; the order does the rest."""
        with self.lock:
            left = sorted(self._left)
            return {"first": self._first, "next": self._next, "left": left, "spread": self._spread}

    def restore(self, state: Any) -> None:
        """Skips what was issued; call after ``update_search_space``."""
        with self.lock:
            # Older states count points in the order of the file.
            self._begin(self._space, state.get("first", 0), spread=state.get("spread", False))
            self._walk_to(state["next"] if "next" in state else state["issued"])
            for place in self._left.keys() - set(state.get("left", ())):
                del self._left[place]

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Skips one more point."""
        with self.lock:
            self._take(parameter_id)

    def _begin(self, space: Space, first: int | None, *, spread: bool = True) -> None:
        self._space = space
        self._spread = spread
        self._points: Iterator[dict[str, Any]] = (
            grid(space, spread=spread) if space.dimensions else iter(())
        )
        self._first = first  # the request that the first point belongs to; None: the next one
        self._next = 0  # points walked past
        self._left: dict[int, dict[str, Any]] = {}  # of these, not issued yet

    def _take(self, parameter_id: int) -> dict[str, Any] | None:
        if self._first is None:
            self._first = parameter_id
        place = parameter_id - self._first
        self._walk_to(place + 1)
        if place not in self._left and not self._left:
            self._walk_to(self._next + 1)  # asked for a second time: one more
        if not self._left:
            return None
        return self._left.pop(place if place in self._left else min(self._left))

    def _walk_to(self, count: int) -> None:
        while self._next < count:
            point = next(self._points, None)
            if point is None:
                return
            self._left[self._next] = point
            self._next += 1
