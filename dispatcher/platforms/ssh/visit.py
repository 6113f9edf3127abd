"""A visit of a machine: one connection, from login to end, and the orders over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.addresses import dialed
from dispatcher.platforms.agents.attended import AttendedVisit, Called, Told
from dispatcher.platforms.archives import Archives
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.platforms.ssh.provisioning import fit
from dispatcher.platforms.ssh.translation import folder_there, translate
from dispatcher.remote_python.errors import HostUnfit
from dispatcher.ssh import ConnectionLost, SshConnection
from trial_runtime import carried
from trial_runtime.agent.config import AgentConfig


class SshVisit(AttendedVisit):
    """A login, with the tunnel by which the agent there reaches its head, if it needs one.
    Thread: one.

    Entering it logs in and brings there what is lacking; leaving it closes the connection, and
    the tunnel with it. All methods block, and raise ``BackendError``.

    Args:
        machine: the one to visit.
        head: the socket file of our ROUTER on this machine for a tunnel; its address and port
            where the machine names one at which its agent reaches it by itself.
        archives: packs what is brought there.
        token: that of the share below the weights root; asked when an agent is started or taken up.
    """

    unfit: ClassVar[type[PermanentBackendError]] = HostUnfit

    def __init__(
        self,
        machine: Machine,
        head: Path | tuple[str, int],
        archives: Callable[[], Archives],
        token: Callable[[], str],
    ) -> None:
        super().__init__(machine.name)
        self._machine = machine
        self._head = head
        self._archives = archives
        self._token = token

    def __enter__(self) -> Self:
        self._connection = self._machine.log_in()
        try:
            self._fitted = fit(self._connection, self._machine, self._archives())
            self._address = way_back(self._connection, self._head, self._machine.head_address)
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
        """Check the connection. Raises ``ConnectionLost`` if it is over."""
        if not self._connection.is_alive():
            raise ConnectionLost("the connection has ended", where=self._machine.name)

    def call(self, arguments: Sequence[str], stdin: bytes, limit_s: float) -> Called:
        """See :meth:`AttendedVisit.call`; the Python runs behind the machine's prolog."""
        modules = carried.variables(*self._fitted.modules)
        ran = self._connection.run(
            self._machine.command(*arguments),
            stdin=stdin,
            limit_s=limit_s,
            environment={"PYTHONPATH": self._fitted.runtime, **modules},
        )
        return Called(ran.code, ran.out, ran.err)

    def told(self, config: AgentConfig) -> Told:
        """See :meth:`AttendedVisit.told`; the address is that of the tunnel, if there is one."""
        try:
            return translate(
                config, self._machine, self._fitted, address=self._address, token=self._token()
            )
        except LookupError as error:
            raise HostUnfit(str(error), where=self._machine.name) from error

    def folder(self, config: AgentConfig) -> str:
        """See :meth:`AttendedVisit.folder`; it lies below the machine's work folder."""
        return folder_there(config, self._fitted)


def way_back(connection: SshConnection, head: Path | tuple[str, int], named: str) -> str:
    """The address at which an agent there finds our ROUTER: a free port there that leads to it, or
    where it listens.

    Args:
        connection: to the machine.
        head: the ROUTER's socket file; or its address and port.
        named: the address that the machine names for the head, with a port or without; or empty.
    """
    if isinstance(head, Path):
        return f"127.0.0.1:{connection.reverse_forward_to_file(head)}"
    host, port = head
    if not named:
        return f"127.0.0.1:{connection.reverse_forward(host, port)}"
    return dialed(named, head)
