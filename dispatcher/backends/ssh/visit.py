"""One connection to a machine, from login to end, and what is done over it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self

import msgspec

from dispatcher.backends.ssh.archive import Archives
from dispatcher.backends.ssh.fitting import HostUnfit, fit
from dispatcher.backends.ssh.machine import Machine
from dispatcher.backends.ssh.translation import folder_there, told_there
from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.ssh import ConnectionLost, connect
from trial_runtime.agent.attending import KILL_S, Answer, Order
from trial_runtime.agent.config import AgentConfig

#: What a look or a start may take on a busy machine, beyond any grace (seconds).
ORDER_S = 60.0

_MODULE = ("-P", "-m", "trial_runtime.agent.attending")
_MOST_SAID = 500

_log = logging.getLogger("bequeath.backends.ssh")


class AgentEnded(Exception):
    """Raised when the agent's process is not there any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HeadGone(Exception):
    """Raised when this head does not lead any more: it leaves without a word."""


class Visit:
    """A login, with the tunnel by which the agent there reaches its head. Thread: one.

    Entering it logs in and brings there what is lacking; leaving it closes the connection, and
    the tunnel with it. All methods block, and raise ``BackendError``.
    """

    def __init__(
        self,
        machine: Machine,
        head: tuple[str, int],
        archives: Callable[[], Archives],
        token: Callable[[], str],
    ) -> None:
        self._machine = machine
        self._head = head
        self._archives = archives
        self._token = token

    def __enter__(self) -> Self:
        try:
            self._connection = connect(self._machine.target())
        except ModuleNotFoundError as error:
            raise PermanentBackendError(
                f"machines are reached by {error.name}, which is not installed here",
                hint="pip install 'bequeath[ssh]'",
            ) from error
        try:
            self._fitted = fit(self._connection, self._machine, self._archives())
            self._port = self._forward()
        except BaseException:
            self._connection.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def check(self) -> None:
        """Raises ``ConnectionLost`` if the connection is over."""
        if not self._connection.is_alive():
            raise ConnectionLost("the connection has ended", where=self._machine.name)

    def ensure(self, config: AgentConfig) -> tuple[int, bool]:
        """Take up the agent, telling it where its head is now, or start one; its pid, and
        whether it is a new one."""
        answer = self._tell("ensure", config)
        if answer.trouble:
            raise HostUnfit(answer.trouble, where=self._machine.name)
        return answer.pid, answer.fresh

    def take_up(self, config: AgentConfig) -> int:
        """Tell the agent where its head is now; its pid. Raises ``AgentEnded``."""
        answer = self._tell("take up", config)
        if not answer.pid:
            raise _ended(answer)
        return answer.pid

    def _tell(self, verb: Literal["ensure", "take up"], config: AgentConfig) -> Answer:
        try:
            told = told_there(
                config, self._machine, self._fitted, port=self._port, token=self._token()
            )
        except LookupError as error:
            raise HostUnfit(str(error), where=self._machine.name) from error
        folder = told.config.experiment_folder
        return self._order(Order(verb, folder, config.worker, told.config, told.environment))

    def look(self, config: AgentConfig) -> None:
        """Raises ``AgentEnded`` if its process is gone."""
        answer = self._order(Order("look", folder_there(config, self._fitted), config.worker))
        if not answer.pid:
            raise _ended(answer)

    def end(self, config: AgentConfig, grace_s: float, *, ask: bool) -> None:
        """Wait for its end, then end it by force; what it ran ends in any case."""
        folder = folder_there(config, self._fitted)
        self._order(Order("end", folder, config.worker, grace_s=grace_s, ask=ask))

    def _order(self, order: Order) -> Answer:
        ran = self._connection.run(
            self._machine.command(*_MODULE),
            stdin=msgspec.json.encode(order),
            limit_s=ORDER_S + order.grace_s + KILL_S,
            environment={"PYTHONPATH": self._fitted.runtime},
        )
        lines = ran.out.splitlines()
        if not ran.ok or not lines:
            raise PassingBackendError(
                f"cannot {order.verb} the agent (exit code {ran.code}): {ran.said()[-_MOST_SAID:]}",
                where=self._machine.name,
            )
        return msgspec.json.decode(lines[-1], type=Answer)

    def _forward(self) -> int:
        """The port there that leads to our ROUTER: any that is free."""
        host, port = self._head
        return self._connection.reverse_forward(host, port)


def _ended(answer: Answer) -> AgentEnded:
    last = answer.trouble.splitlines()[-1:]
    return AgentEnded("its process ended" + (f"; its last words: {last[0]}" if last else ""))
