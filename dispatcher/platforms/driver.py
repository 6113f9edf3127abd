"""The head's side of one worker, and what a platform makes it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from dispatcher.experiment.service import ServiceConfig
from dispatcher.ports import Backend

if TYPE_CHECKING:
    from dispatcher.platforms.agents.process import AgentProcess
    from dispatcher.platforms.agents.self_report import Statistics
    from dispatcher.platforms.agents.visit import Visit
    from dispatcher.platforms.allocations.process import Load
    from dispatcher.platforms.services.protocol import ServiceBackend


class Driver(Backend, Protocol):
    """The head's side of one worker. Thread: the engine's.

    Attributes:
        judged: whether its events are checked like those of a stranger, since code of another
            package makes them.
    """

    judged: bool

    def part(self, *, leave_running: bool, deadline_s: float) -> None:
        """Begin to end, before all drivers are closed: others do so meanwhile. Never blocks.

        Args:
            leave_running: whether trials go on for the next head.
            deadline_s: seconds that :meth:`close` will have.
        """
        ...

    def statistics(self) -> Statistics | None:
        """Return the newest figures; None where nothing of ours runs that could count them."""
        ...

    def waiting(self) -> str | None:
        """Return why the worker has not joined, in a sentence; None if it has, or nobody knows."""
        ...


class Closable(Protocol):
    """A part that several workers share."""

    def close(self) -> None:
        """End it. May block for some seconds."""
        ...


C = TypeVar("C", bound=Closable)


class Drivers(Protocol):
    """Makes the parts of one worker's driver; each knows the worker it is for. Does not block."""

    def agent(self, process: AgentProcess) -> Driver:
        """Make the driver of an agent, whatever starts and watches its process."""
        ...

    def visited(self, visit: Callable[[], Visit]) -> AgentProcess:
        """Make the process of an agent that is seen by visits, in a thread of its own."""
        ...

    def load(self) -> Load:
        """Return how much there is to do, for the worker and in all. Thread: the engine's."""
        ...

    def now(self) -> float:
        """Return the moment of now as the core counts it, in seconds since the epoch: steps of the
        machine's clock do not move it. From any thread."""
        ...

    def service(self, make: Callable[[], ServiceBackend]) -> Driver:
        """Make the driver of a backend that runs attempts itself, in a thread of its own."""
        ...

    def shared(self, section: ServiceConfig, make: Callable[[], C]) -> C:
        """Return what all workers of a section share: made for the first of them, and closed when
        all drivers are."""
        ...
