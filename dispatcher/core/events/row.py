"""The form of a row in the catalogue of events: all that holds for every event of one kind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dispatcher.core.model import TrialState


class Origin(StrEnum):
    """The place from which an event may come."""

    HEAD = "head"  # the head itself: its clock, its disks, signals, the weight keeper
    USER = "user"  # a command, or a program that uses the API
    TUNER = "tuner"  # the tuner host, for the tuner or an assessor; its driver, when it is lost
    WORKER = "worker"  # an agent, or a backend of another package


#: The states into which an event may take its trial, by the state in which it finds it.
Targets = Mapping[TrialState, frozenset[TrialState]]

#: From where to where; None: a trial that is new.
Arrow = tuple[TrialState | None, TrialState]

#: It may not move its trial.
STAYS: Final[frozenset[TrialState]] = frozenset()


@dataclass(frozen=True, slots=True)
class EventRow:
    """The properties of one kind of event.

    An event that names a trial has its effect where it is ``legal``; where it is ``late`` it is
    recorded without effect, because it crossed with a decision of ours; anywhere else it is an
    :class:`~dispatcher.errors.InvalidTransition` and nothing changes. If it names an attempt as
    well, it is late in every state unless it is of the newest one (promise 3).
    """

    by: frozenset[Origin]
    legal: Targets = field(default_factory=dict)
    late: frozenset[TrialState] = frozenset()
    #: How it may move trials that it does not name.
    others: frozenset[Arrow] = frozenset()
    #: The answer of a request that was killed before: legal in ENDED, too.
    after_kill: bool = False
    #: Late while no tuner host is ready. It comes from one that is gone then: its memory went with
    #: it, and its successor gets all requests and results again.
    of_host: bool = False
    #: Has a row in the journal. If not, it may change nothing that a replay must find.
    journalled: bool = True
    #: A power cut must not lose it. If it may, since it is asked or reported again, a batch of
    #: nothing else is committed without waiting for the disk.
    durable: bool = True
    #: There may be more room on a worker than before. If not, and nothing that waits had a place,
    #: it has none now. What comes into the queue, or leaves it, reports that itself.
    frees: bool = True


def targets(*pairs: tuple[Iterable[TrialState], Iterable[TrialState]]) -> Targets:
    """The table of where an event leads, from pairs of states and what each of them leads to."""
    return {state: frozenset(to) for states, to in pairs for state in states}


def arrows(*pairs: tuple[Iterable[TrialState | None], Iterable[TrialState]]) -> frozenset[Arrow]:
    """All arrows from the states of each pair to what they lead to."""
    return frozenset((before, after) for states, to in pairs for before in states for after in to)


def all_but(*states: TrialState) -> frozenset[TrialState]:
    """Every state except these."""
    return frozenset(TrialState) - set(states)
