"""The base classes of platforms, which entry points name, and which ours have, too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

from dispatcher.experiment.fields import Section
from dispatcher.experiment.platform_base import FilePlatform, S
from dispatcher.platforms.allocations.section import AllocationService
from dispatcher.platforms.worker_files import FilesOneByOne, WorkerFiles

if TYPE_CHECKING:
    from dispatcher.platforms.agents.visit import Visit
    from dispatcher.platforms.allocations.allocation import Allocator
    from dispatcher.platforms.allocations.pool import AllocationPool
    from dispatcher.platforms.driver import Driver, Drivers
    from dispatcher.platforms.given import Given, ServiceGiven
    from dispatcher.platforms.host import ReachableHost
    from dispatcher.platforms.services.protocol import ServiceBackend
    from dispatcher.ports import AttemptFiles

A = TypeVar("A", bound=AllocationService)

Reach = Literal["socket", "tunnel", "tcp"]
"""How a worker reaches the head: by its socket file, which processes of this machine can open; by a
tunnel of its platform that ends at another socket file, with CURVE; or by TCP with CURVE."""


class Platform(FilePlatform[S], ABC):
    """A kind of place where trials run: an :class:`AgentPlatform`, a :class:`BackendPlatform`, an
    :class:`AllocationPlatform`, or one that makes its drivers itself.

    An object of a subclass is what an entry point of the group ``bequeath.backends`` names; the
    entry point's name is the word that is written as ``platform`` in the experiment file.

    Attributes:
        reach: the way by which its workers reach the head.
    """

    reach: ClassVar[Reach] = "tcp"

    def reach_of(self, part: Section) -> Reach:
        """The way by which one worker reaches the head, where that depends on its section."""
        return self.reach

    def host(self, worker: str, part: Section) -> ReachableHost | None:
        """Name the machine of one worker, for ``hosts check`` and ``hosts tidy``; None where it
        has none that could be visited.

        Args:
            worker: its name.
            part: its own section of the file.
        """
        return None

    def files(self, given: Given[S], trial: int, attempt: int) -> AttemptFiles | None:
        """Files of an attempt where it runs or ran, and a shell there; None if this platform
        does not offer that. Must not block.

        Args:
            given: that of its worker.
            trial: the number of its trial.
            attempt: its number within the trial.
        """
        return None

    def worker_files(self, given: Given[S]) -> WorkerFiles:
        """Files of all attempts of one worker, for a platform that keeps something open between
        two questions, such as a login; each by :meth:`files`, unless it overrides this. Must not
        block."""
        return FilesOneByOne(partial(self.files, given))

    @abstractmethod
    def driver(self, given: Given[S], drivers: Drivers) -> Driver:
        """Make the driver of one worker. The three kinds of platforms below have one, which nobody
        needs to override. Must not block.

        Args:
            given: that of the worker.
            drivers: makes what a driver is made of.
        """
        ...


class AgentPlatform(Platform[S]):
    """A platform whose trials run below our agent: it gets an agent's process somewhere and sees
    that it is gone, and no more. All visits are made in a thread of their own, one for each worker
    (:class:`~dispatcher.platforms.agents.visited.VisitedProcess`)."""

    @abstractmethod
    def visit(self, given: Given[S]) -> Visit:
        """Make one visit of the worker's place. Called in the thread of that worker alone, again
        for each visit; an exception harms this worker only."""
        ...

    def driver(self, given: Given[S], drivers: Drivers) -> Driver:
        """See :meth:`Platform.driver`: an agent, seen by visits."""
        return drivers.agent(drivers.visited(partial(self.visit, given)))


class BackendPlatform(Platform[S]):
    """A platform that runs attempts itself, without our agent: a service with its own interface.

    Its backends are called in a thread of their own, one for each worker, and may block there.
    """

    own_resources: ClassVar[bool] = True
    has_agent: ClassVar[bool] = False

    @abstractmethod
    def backend(self, given: Given[S]) -> ServiceBackend:
        """Make the backend of one worker; called when a worker is wanted there first, and again
        after one has failed. An exception harms this worker only."""
        ...

    def driver(self, given: Given[S], drivers: Drivers) -> Driver:
        """See :meth:`Platform.driver`: the backend, in its thread."""
        return drivers.service(partial(self.backend, given))


class AllocationPlatform(Platform[A]):
    """A platform whose workers are allocations of somebody else's scheduler: each holds one of our
    agents, may wait in a queue for days, and may be taken back. One thread for each service asks
    the scheduler, for all of its workers together."""

    @abstractmethod
    def allocator(self, service: ServiceGiven[A]) -> Allocator:
        """Make what talks with the scheduler. Called in the thread of that service alone, again
        after it failed; an exception harms this service only."""
        ...

    def driver(self, given: Given[A], drivers: Drivers) -> Driver:
        """See :meth:`Platform.driver`: an agent in an allocation."""
        pool = drivers.shared(given.section, partial(self._pool, given))
        slots = given.config.slots
        process = pool.process(given.worker, given.home, slots=slots, load=drivers.load)
        return drivers.agent(process)

    def _pool(self, given: Given[A]) -> AllocationPool:
        from dispatcher.platforms.allocations.pool import AllocationPool
        from dispatcher.platforms.given import service_given

        service = service_given(given)
        make = partial(self.allocator, service)
        bounds = given.section.allocations.bounds
        return AllocationPool(make, service.label, bounds, leads=given.leads)
