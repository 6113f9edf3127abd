"""Files of attempts that the head asks an agent for, for somebody who waits; and the ends of logs
that an agent hands in by itself, where nobody else sees them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from trial_runtime import wire

#: Questions to one agent at a time: it passes over more.
MOST_ASKED = 4

#: Seconds after which an answer is not waited for any more: it or its question was lost.
ANSWER_S = 10.0

KeepLogs = Callable[[str, Sequence[wire.LogEnds]], None]
"""Gets a worker, and the ends of logs that its agent hands in; never blocks."""


def keep_no_logs(worker: str, logs: Sequence[wire.LogEnds]) -> None:
    """Drop them."""


@dataclass(frozen=True)
class Wanted:
    """A part of a file of an attempt, or with ``most`` of the list of its files; the fields are
    those of :class:`trial_runtime.wire.FileAsked`."""

    trial: int
    attempt: int
    path: bytes
    offset: int
    limit: int
    most: int = 0


@dataclass
class Asked:
    """A question that is under way. One of ``given`` and ``trouble`` is there in the end."""

    until: float
    given: wire.FileGiven | None = None
    trouble: str = ""

    @property
    def over(self) -> bool:
        """Whether it was answered, or never will be."""
        return self.given is not None or bool(self.trouble)


class FileAsks:
    """The questions to one agent after another at one place. Thread: the engine's; never blocks.

    Args:
        place: of the agent, for people.
        send: sends messages to the agent at once; false if they could not go.
        clock: monotonic seconds.
        keep: gets the ends of logs.
    """

    def __init__(
        self,
        place: str,
        send: Callable[[Sequence[wire.FromHead]], bool],
        clock: Callable[[], float],
        keep: KeepLogs = keep_no_logs,
    ) -> None:
        self._place = place
        self._keep = keep
        self._send = send
        self._clock = clock
        self._under_way: dict[int, Asked] = {}
        self._serves: bool | None = None  # None: no agent has joined

    def joined(self, serves: Collection[str]) -> None:
        """Ask this agent from now on; ``serves`` as its hello has it."""
        self.gone()
        self._serves = wire.FILES in serves

    def gone(self) -> None:
        """Give up what is under way: the agent is gone."""
        for asked in self._under_way.values():
            asked.trouble = f"{self._place} is not there any more"
        self._under_way.clear()
        self._serves = None

    def ask(self, wanted: Wanted) -> Asked:
        """Ask the agent; what comes of it is in the result, at the latest after ``ANSWER_S``."""
        self._give_up()
        asked = Asked(self._clock() + ANSWER_S)
        if self._serves is None:
            asked.trouble = f"{self._place} is not there at the moment"
        elif not self._serves:
            asked.trouble = f"the agent of {self._place} is of an older version: it shows no files"
        elif len(self._under_way) >= MOST_ASKED:
            asked.trouble = f"others read files of {self._place} at this moment"
        else:
            number = secrets.randbits(52)  # an answer to another head, or to none, fits nothing
            part = (wanted.path, wanted.offset, wanted.limit, wanted.most)
            question = wire.FileAsked(number, wanted.trial, wanted.attempt, *part)
            if self._send([question]):
                self._under_way[number] = asked
            else:
                asked.trouble = f"{self._place} takes nothing at the moment"
        return asked

    def take(self, given: wire.FileGiven) -> None:
        """Take an answer; one that nobody waits for any more is passed over."""
        asked = self._under_way.pop(given.number, None)
        if asked is not None:
            asked.given = given

    def handed_in(self, logs: Sequence[wire.LogEnds]) -> None:
        """Pass the ends of logs on to who keeps them."""
        if logs:
            self._keep(self._place, logs)

    def settled(self, asked: Asked) -> bool:
        """Whether a question was answered, or never will be."""
        self._give_up()
        return asked.over

    def _give_up(self) -> None:
        now = self._clock()
        for number, asked in list(self._under_way.items()):
            if now >= asked.until:
                asked.trouble = f"{self._place} has not answered for {ANSWER_S:.0f} s"
                del self._under_way[number]
