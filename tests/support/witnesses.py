"""What others than the journal can tell: the calls that a tuner got, the orders of agents, the
words that they may forget, the answers of users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from dispatcher.control.messages import ControlRequest
from dispatcher.core import actions as a
from tests.support.reading import Reading

#: What a tuner was told, in order: ("result", trial, value as JSON text), ("end", trial, success),
#: ("generate", trial, None), ("granted", trial, [mode, *parents]).
Call = tuple[str, int, Any]


#: What leaves the head and is looked at.
Order = a.StartAttempt | a.GrantRemoval | a.GrantVersions | a.AnswerOffer


class Ordered(NamedTuple):
    """What left the head, and between which rows it was decided: after ``since``, not after
    ``until``."""

    since: int
    until: int
    order: Order


class Harm(NamedTuple):
    """Something befell a worker itself, after that row: what it ran may be lost."""

    row: int
    worker: str


class Mark(NamedTuple):
    """Which save a tensor is of."""

    trial: int
    attempt: int
    number: int

    @property
    def author(self) -> str:
        """Trial and attempt."""
        return f"{self.trial}.{self.attempt}"

    @property
    def text(self) -> str:
        """What the head hears of it instead of a digest."""
        return self.author + "+" * (self.number - 1)


#: What weights hold: which save each tensor is of.
Contents = dict[str, Mark]


class Loaded(NamedTuple):
    """What a child has found in its parent's weights."""

    trial: int
    attempt: int
    path: str
    digest: str
    tensors: Contents


@dataclass
class Witnesses:
    """What others than the journal can tell.

    ``calls``: what the tuner of the newest host was told, restored calls included. ``orders``:
    what agents and the weight keeper were told to do, in order. ``words``: those that agents
    were allowed to forget; ``metrics``: the values that the store has, by (trial, attempt, seq);
    ``counted``: of each attempt the value of the newest one that was taken. ``wishes``: those of
    users that were answered with yes. ``harms``: what befell workers; None if nobody looked.
    ``loads``: what children have found in their parents' weights; None if these are no files.
    """

    calls: Sequence[Call] | None = None
    orders: Sequence[Ordered] = ()
    words: Sequence[Any] = ()
    metrics: dict[tuple[int, int, int], str] | None = None
    counted: dict[tuple[int, int], str] | None = None
    wishes: Sequence[ControlRequest] = field(default_factory=tuple)
    harms: Sequence[Harm] | None = None
    loads: Sequence[Loaded] | None = None


class Promise(Protocol):
    """Yields a sentence for each breach; ``over`` as in ``check_journal``."""

    def __call__(self, reading: Reading, seen: Witnesses, *, over: bool) -> Iterator[str]: ...
