"""Visits of a place where a program can be run: our own one does the rest there."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar, Literal, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.platforms.agents.visit import AgentEnded
from trial_runtime.agent.attending import KILL_S, Answer, Order
from trial_runtime.agent.config import AgentConfig
from trial_runtime.safe_path import module_arguments
from trial_runtime.trial_wire import UNREADABLE, brief

#: What a look or a start may take on a busy machine, beyond any grace (seconds).
ORDER_S = 60.0

#: For a Python of any version that trials run with.
_MODULE = tuple(module_arguments("trial_runtime.agent.attending", (3, 9)))
_MOST_TEXT = 500

#: Numbers of all orders of this process: an order of a connection that has died since may arrive
#: after one of the next connection.
_numbers = itertools.count(1)


class Called(NamedTuple):
    """The end of a program: its exit code, and its output."""

    code: int
    out: bytes
    err: bytes = b""


class Told(NamedTuple):
    """The configuration of an agent on another machine, and the environment it starts in."""

    config: AgentConfig
    environment: dict[str, str]


class AttendedVisit(ABC):
    """A :class:`~dispatcher.platforms.agents.visit.Visit` of a place where Python can be called.

    A subclass implements :meth:`call`. A program of ours runs there and reads its order from
    stdin (:mod:`trial_runtime.agent.attending`). Processes that it leaves behind must go on when
    it has ended, as they do behind ``docker exec`` and do not behind ``srun``.

    Args:
        place: name of the place, for messages.
    """

    #: Raised when the place lacks something that somebody has to bring first.
    unfit: ClassVar[type[PermanentBackendError]] = PermanentBackendError

    def __init__(self, place: str) -> None:
        self.place = place
        self.outdated = False

    @abstractmethod
    def call(self, arguments: Sequence[str], stdin: bytes, limit_s: float) -> Called:
        """Run the place's Python with these arguments, ``trial_runtime`` being importable for
        it. Blocks until its end.

        Args:
            arguments: of the Python.
            stdin: all that the program reads.
            limit_s: seconds after which it is given up.

        Raises:
            BackendError: it did not run, or takes longer.
        """
        ...

    def told(self, config: AgentConfig) -> Told:
        """The agent's configuration and environment, with paths and the head's address as they
        are there.

        Raises:
            BackendError: they cannot be had, such as for a secret that is missing.
        """
        return Told(config, {})

    def folder(self, config: AgentConfig) -> str:
        """The experiment's folder there."""
        return config.experiment_folder

    def __enter__(self) -> Self:
        """Do nothing: there is no connection."""
        return self

    def __exit__(  # noqa: B027 - not every place has a connection
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing: there is no connection."""

    def check(self) -> None:  # noqa: B027 - not every place has a connection
        """Do nothing: there is no connection that could break."""

    def ensure(self, config: AgentConfig) -> tuple[int, bool]:
        """Take up the agent, telling it where its head is now, or start one."""
        answer = self._send_config("ensure", config)
        if answer.trouble:
            raise self.unfit(answer.trouble, where=self.place)
        self.outdated = answer.outdated
        return answer.pid, answer.fresh

    def take_up(self, config: AgentConfig) -> int:
        """Tell the agent where its head is now; returns its process id. Raises ``AgentEnded``."""
        answer = self._send_config("take up", config)
        if not answer.pid:
            raise _ended(answer)
        self.outdated = answer.outdated
        return answer.pid

    def look(self, config: AgentConfig) -> None:
        """Check the agent's process. Raises ``AgentEnded`` if it is gone."""
        answer = self._order(Order("look", self.folder(config), config.worker), config)
        if not answer.pid:
            raise _ended(answer)

    def end(self, config: AgentConfig, grace_s: float, *, ask: bool) -> None:
        """See :meth:`dispatcher.platforms.agents.visit.Visit.end`."""
        folder = self.folder(config)
        self._order(Order("end", folder, config.worker, grace_s=grace_s, ask=ask), config)

    def _send_config(self, verb: Literal["ensure", "take up"], config: AgentConfig) -> Answer:
        there = self.told(config)
        folder = there.config.experiment_folder
        order = Order(verb, folder, config.worker, there.config, there.environment)
        return self._order(order, config)

    def _order(self, order: Order, config: AgentConfig) -> Answer:
        order = replace(order, epoch=config.epoch, number=next(_numbers))
        limit_s = ORDER_S + order.grace_s + KILL_S
        ran = self.call(_MODULE, msgspec.json.encode(order), limit_s)
        lines = ran.out.splitlines()
        if ran.code or not lines:
            output = (ran.err or ran.out).decode(errors="replace").strip()[-_MOST_TEXT:]
            raise PassingBackendError(
                f"cannot {order.verb} the agent (exit code {ran.code}): {output}", where=self.place
            )
        try:
            return msgspec.json.decode(lines[-1], type=Answer)
        except UNREADABLE as error:
            raise PassingBackendError(
                f"does not answer as an agent's keeper: {brief(error)}", where=self.place
            ) from error


def _ended(answer: Answer) -> AgentEnded:
    last = answer.trouble.splitlines()[-1:]
    return AgentEnded("its process ended" + (f"; its last lines: {last[0]}" if last else ""))
