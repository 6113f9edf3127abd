"""How many places each worker's scheduler is asked for: cheaper ones first, as they are filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dispatcher.core import State
from dispatcher.core.ids import WorkerId
from dispatcher.core.place_ends import spent_text
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.platforms.allocations.process import Load
from dispatcher.wiring.needs import domain_of_place, offered_at
from dispatcher.wiring.places import places

#: A cheaper place that was asked for counts as one that comes for so long (seconds). A queue may
#: take days: then the dearer one is asked for as well, and what comes too late is given back.
PATIENCE_S = 60.0


class CostedPlace(NamedTuple):
    """A worker as the file has it: ``cost`` says which is filled first, ``domain`` whose weights
    it reaches."""

    worker: str
    slots: int
    cost: float = 0.0
    domain: str = ""


def costed_places(config: ExperimentConfig) -> list[CostedPlace]:
    """The workers of an experiment file with what they cost."""
    return [
        CostedPlace(each.worker, each.slots, offered_at(each).cost or 0.0, domain_of_place(each))
        for each in places(config)
    ]


class Ordering:
    """Says how much there is to do for each worker. Thread: the engine's.

    Args:
        known: all workers of the file.
        state: of the core.
        clock: the engine's, in seconds since the epoch.
    """

    def __init__(
        self, known: Sequence[CostedPlace], state: State, clock: Callable[[], float]
    ) -> None:
        self._state = state
        self._clock = clock
        self._began = clock()
        self._places = {each.worker: each for each in known}
        self._cheaper = {
            mine.worker: [each for each in known if each.cost < mine.cost] for mine in known
        }

    def load_of(self, worker: str) -> Load:
        """How much there is to do for a worker, without what cheaper places will take.

        Args:
            worker: its name.
        """
        load = load_of(self._state, self._clock, worker)
        if not load.queued or worker not in self._places:
            return load
        taken = sum(
            each.slots
            for each in self._cheaper[worker]
            if self._comes(each) and self._would_serve(each, self._places[worker])
        )
        return load._replace(queued=max(0, load.queued - taken))

    def _comes(self, place: CostedPlace) -> bool:
        """Whether a place is about to be there: what is there has been filled already, as far as
        trials fit, and what was lost is not counted on."""
        there, now = self._state.workers.get(WorkerId(place.worker)), self._clock()
        if there is None:
            return now - self._began < PATIENCE_S
        if there.waits_since is None:
            return False
        # Without a reason none is asked for yet: there was nothing to run until now.
        return not there.waiting or now - there.waits_since < PATIENCE_S

    def _would_serve(self, place: CostedPlace, dearer: CostedPlace) -> bool:
        """Whether what is queued for the dearer place could run in the other one."""
        if place.domain == dearer.domain:
            return True
        return all(each.home in (None, place.domain) for each in self._state.queue_classes)


def load_of(state: State, clock: Callable[[], float], worker: str) -> Load:
    """How much there is to do for a worker, as the core has it. Thread: the engine's.

    What is queued beyond the concurrency needs no place: with a look ahead something always is.

    Args:
        state: of the core.
        clock: the engine's, in seconds since the epoch.
        worker: its name.
    """
    there = state.workers.get(WorkerId(worker))
    room = max(0, state.settings.slots - len(state.running))
    queued = min(len(state.queued), room)
    if there is None:
        return Load(queued, False)
    spent = spent_text(state, there, clock())
    return Load(queued, bool(there.running), there.begun, spent)
