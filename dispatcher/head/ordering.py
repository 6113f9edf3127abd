"""How many places each worker's scheduler is asked for: cheaper ones first, as they are filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, islice, takewhile
from typing import NamedTuple

from dispatcher.core import State
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import Worker
from dispatcher.core.place_ends import end_of, spent_text
from dispatcher.core.resource_match import never_fits
from dispatcher.core.resources import Needs
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.platforms.agents.self_report import AT_ONCE
from dispatcher.platforms.allocations.process import Load
from dispatcher.wiring.needs import domain_of_place, offered_at
from dispatcher.wiring.places import places

#: A cheaper place that was asked for counts as one that comes for so long (seconds). A queue may
#: take days: then the dearer one is asked for as well, and what comes too late is given back.
PATIENCE_S = 60.0

#: So long (seconds) an answer counts for all workers that it holds for: each of a thousand asks
#: twice a second, and each answer looks at all that are cheaper.
LATELY_S = 0.1

#: So many places of a service are looked at for what it has: those of one section are alike.
MOST_LOOKED_AT = 32


class CostedPlace(NamedTuple):
    """A worker as the file has it: ``cost`` says which is filled first, ``domain`` whose weights
    it reaches, ``service`` which scheduler is asked for it."""

    worker: str
    slots: int
    cost: float = 0.0
    domain: str = ""
    service: int = 0


def costed_places(config: ExperimentConfig) -> list[CostedPlace]:
    """The workers of an experiment file with what they cost."""
    numbers = {id(service): number for number, service in enumerate(config.services)}
    return [
        CostedPlace(
            each.worker,
            each.slots,
            offered_at(each).cost or 0.0,
            domain_of_place(each),
            numbers[id(each.service)],
        )
        for each in places(config)
    ]


class _Answer(NamedTuple):
    """How many trials cheaper places leave of so many that are queued, as it was at a moment."""

    queued: int
    left: int
    at: float


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
        self._by_cost = sorted(known, key=lambda each: each.cost)
        self._answers: dict[tuple[float, str], _Answer] = {}  # by cost and domain

    def load_of(self, worker: str) -> Load:
        """How much there is to do for a worker, without what cheaper places will take.

        Args:
            worker: its name.
        """
        load = load_of(self._state, self._clock, worker)
        if not load.queued or worker not in self._places:
            return load
        place, now = self._places[worker], self._clock()
        last = self._answers.get((place.cost, place.domain))
        if last is None or last.queued != load.queued or now - last.at >= LATELY_S:
            last = _Answer(load.queued, self._left_for(place, load.queued, now), now)
            self._answers[place.cost, place.domain] = last
        return load._replace(queued=last.left)

    def _left_for(self, place: CostedPlace, queued: int, now: float) -> int:
        """How many of the queued trials places that are cheaper than this one leave."""
        left = queued
        cheaper = takewhile(lambda each: each.cost < place.cost, self._by_cost)
        for _, level in groupby(cheaper, key=lambda each: each.cost):
            services: dict[tuple[int, str], list[CostedPlace]] = {}
            for each in level:
                services.setdefault((each.service, each.domain), []).append(each)
            left -= sum(
                self._will_take(those, left, now)
                for (_, domain), those in services.items()
                if self._would_serve(domain, place)
            )
        return max(0, left)

    def _will_take(self, those: Sequence[CostedPlace], queued: int, now: float) -> int:
        """How many of the queued trials a service is about to have a place for: none of those that
        could never run in the places that it has given so far.

        Args:
            those: its places.
            queued: how many trials are there for it.
            now: on the engine's clock.
        """
        fitting = self._fitting(those)
        return min(fitting, self._coming(those, min(queued, fitting), now))

    def _fitting(self, those: Sequence[CostedPlace]) -> int:
        """How many trials of the queue may ever run in a service, as far as anybody knows."""
        state = self._state
        there = (state.workers.get(WorkerId(each.worker)) for each in those)
        seen = (worker for worker in there if worker is not None and worker.known is not None)
        known = list(islice(seen, MOST_LOOKED_AT))
        if not known:
            return len(state.queued)
        return sum(
            len(members)
            for each, members in state.queue_classes.items()
            if _may_fit(each.needs or state.settings.needs, known)
        )

    def _coming(self, those: Sequence[CostedPlace], queued: int, now: float) -> int:
        """The slots of a service that are about to be there: what is there has been filled already,
        as far as trials fit, and what was lost is not counted on.

        Args:
            those: its places.
            queued: how many trials are there for it.
            now: on the engine's clock.
        """
        asked = soon = unasked = 0
        for each in those:
            there = self._state.workers.get(WorkerId(each.worker))
            if there is None:
                soon += each.slots if now - self._began < PATIENCE_S else 0
            elif there.waits_since is not None and there.waiting:
                asked += each.slots
                soon += each.slots if now - there.waits_since < PATIENCE_S else 0
            elif there.waits_since is not None:
                unasked += each.slots  # there was nothing to run until now
        # A scheduler is asked for no more while those that it was asked for are enough, however
        # long they wait.
        return soon + min(unasked, max(0, queued - asked))

    def _would_serve(self, domain: str, dearer: CostedPlace) -> bool:
        """Whether what is queued for the dearer place could run in another domain."""
        if domain == dearer.domain:
            return True
        return all(each.home in (None, domain) for each in self._state.queue_classes)


def _may_fit(needs: Needs, known: Sequence[Worker]) -> bool:
    return not needs.counted or any(not never_fits(needs, worker) for worker in known)


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
    going = end_of(there) == AT_ONCE
    return Load(queued, bool(there.running), there.begun, spent, going)
