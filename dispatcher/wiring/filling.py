"""The order in which the places of an experiment file are filled, for people to look over."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.plugged import word_of
from dispatcher.wiring.needs import offered_at
from dispatcher.wiring.places import places


class Filled(NamedTuple):
    """Workers of one service that are filled at the same time.

    Attributes:
        name: of the only worker, or of their platform.
        workers: how many they are at most.
        slots: trials at once on each.
        cost: theirs.
    """

    name: str
    workers: int
    slots: int
    cost: float

    def __str__(self) -> str:
        many = str(self.slots) if self.workers == 1 else f"{self.workers} × {self.slots}"
        return f"{self.name} ({many}{f', cost {self.cost:g}' if self.cost else ''})"


def filling_order(config: ExperimentConfig) -> list[Filled]:
    """Return what is filled, the cheapest first, and else as the file has it."""
    found: dict[tuple[int, int, float], list[str]] = {}
    words: dict[int, str] = {}
    services = [id(service) for service in config.services]
    for place in places(config):
        index = services.index(id(place.service))
        words[index] = word_of(place.service)
        key = (index, place.slots, offered_at(place).cost or 0.0)
        found.setdefault(key, []).append(place.worker)
    twice = Counter(words.values())
    order = []
    for (index, slots, cost), workers in found.items():
        number = f"-{index + 1}" if twice[words[index]] > 1 else ""
        name = workers[0] if len(workers) == 1 else f"{words[index]}{number}"
        order.append(Filled(name, len(workers), slots, cost))
    return sorted(order, key=lambda each: each.cost)


def has_an_order(filled: list[Filled]) -> bool:
    """Whether something is filled before something else."""
    return len({each.cost for each in filled}) > 1
