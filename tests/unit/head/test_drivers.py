"""The parts of drivers that the head hands to platforms."""

from __future__ import annotations

from typing import Any

from dispatcher.experiment.service import ServiceConfig
from dispatcher.head.drivers import SharedParts
from dispatcher.platforms.agents.visit import Visit
from dispatcher.platforms.platform import AgentPlatform, BackendPlatform
from dispatcher.platforms.services.protocol import ServiceBackend


class Part:
    """What workers share; notes its end."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Noted:
    """Stands for ``Drivers``: gives back what it was asked for."""

    def agent(self, process: Any) -> Any:
        return ("agent", process)

    def visited(self, visit: Any) -> Any:
        return ("visited", visit())

    def service(self, make: Any) -> Any:
        return ("service", make())


class Visited(AgentPlatform[ServiceConfig]):
    def visit(self, given: Any) -> Visit:
        return ("visit", given)  # type: ignore[return-value]


class Served(BackendPlatform[ServiceConfig]):
    def backend(self, given: Any) -> ServiceBackend:
        return ("backend", given)  # type: ignore[return-value]


def test_what_workers_of_a_section_share_is_made_once_for_it() -> None:
    """Two sections that say the same are two. Mutation: they are taken for one."""
    first, second = ServiceConfig(), ServiceConfig()
    assert first == second
    shared = SharedParts()
    one, other = shared.of(first, Part), shared.of(second, Part)
    assert shared.of(first, Part) is one
    assert one is not other
    shared.close()
    shared.close()
    assert (one.closed, other.closed) == (1, 1)


def test_a_platform_of_a_kind_gets_the_driver_of_that_kind() -> None:
    """With one method of its own."""
    given: Any = object()
    drivers: Any = Noted()
    assert Visited().driver(given, drivers) == ("agent", ("visited", ("visit", given)))
    assert Served().driver(given, drivers) == ("service", ("backend", given))
    assert (Visited.has_agent, Served.has_agent) == (True, False)
