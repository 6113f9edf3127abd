"""The base classes of platforms, which entry points name, and which ours have, too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from dispatcher.experiment.fields import Section
from dispatcher.experiment.platform_base import FilePlatform, Reach, S
from dispatcher.platforms.worker_files import AttemptShell, FilesOneByOne, WorkerFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dispatcher.findings import Finding
    from dispatcher.platforms.agents.visit import Visit
    from dispatcher.platforms.allocations.allocation import Allocator
    from dispatcher.platforms.allocations.pool import AllocationPool
    from dispatcher.platforms.allocations.probe import ProbeNeeds
    from dispatcher.platforms.allocations.section import AllocationService
    from dispatcher.platforms.driver import Driver, Drivers
    from dispatcher.platforms.given import Given, ServiceGiven
    from dispatcher.platforms.host import ReachableHost
    from dispatcher.platforms.services.protocol import ServiceBackend
    from dispatcher.ports import AttemptFiles

#: The ways that a section may name.
REACH: dict[str, Reach] = {"direct": "tcp", "tunnel": "jump", "folder": "folder"}

A = TypeVar("A", bound="AllocationService")


class Platform(FilePlatform[S], ABC):
    """A kind of place where trials run: an :class:`AgentPlatform`, a :class:`BackendPlatform`, an
    :class:`AllocationPlatform`, or one that makes its drivers itself.

    An object of a subclass is what an entry point of the group ``bequeath.backends`` names; the
    entry point's name is the word that is written as ``platform`` in the experiment file.
    """

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

    def shell(
        self, given: Given[S], trial: int, attempt: int, *, pid: int = 0
    ) -> AttemptShell | None:
        """A shell beside an attempt, for a platform that does not show its files: those are read by
        its agent. None if it opens none. Must not block.

        Args:
            given: that of its worker.
            trial: the number of its trial.
            attempt: its number within the trial.
            pid: that of its process there; 0 for none.
        """
        return None

    def sweep(self, service: ServiceGiven[S]) -> list[str]:
        """Cancel what a service has left at its scheduler while no head leads its experiment, and
        return the names of that; called at ``kill`` and ``experiment delete``. May block for half
        a minute, and raise ``BackendError``.

        Args:
            service: whose label what is left begins with.
        """
        return []

    def probe(self, given: Given[S], limit_s: float) -> Iterable[Finding]:
        """Look for what trials need where they would run, in one allocation that is asked for and
        ended. For ``doctor FILE``, ``hosts check FILE`` and ``validate --connect``, of the first
        worker of each service. Blocks; may raise ``BackendError``.

        Args:
            given: that of the worker, of an experiment that nobody leads.
            limit_s: how long it may take until there is an answer.
        """
        return ()

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

    def probe_needs(self, given: Given[A]) -> ProbeNeeds | None:
        """Return what a place is looked over for before the first trial, by a platform whose
        allocator has :meth:`Allocator.answer`, and runs the arguments of that order as they are;
        None: it is not.

        Args:
            given: that of a worker.
        """
        return None

    def probe(self, given: Given[A], limit_s: float) -> Iterable[Finding]:
        """See :meth:`Platform.probe`."""
        needs = self.probe_needs(given)
        if needs is None:
            return ()
        from dispatcher.platforms.allocations.probing import probe_once
        from dispatcher.platforms.given import service_given

        service = service_given(given)
        allocator = self.allocator(service)
        return probe_once(allocator, service.label, given.config, given.home, needs, limit_s)

    def reach_of(self, part: Section) -> Reach:
        """See :meth:`FilePlatform.reach_of`: as the section says, else as is usual here."""
        from dispatcher.platforms.allocations.section import AllocationService

        channel = part.channel if isinstance(part, AllocationService) else "auto"
        return self.reach if channel == "auto" else REACH[channel]

    @abstractmethod
    def allocator(self, service: ServiceGiven[A]) -> Allocator:
        """Make what talks with the scheduler. Called in the thread of that service alone, again
        after it failed; an exception harms this service only."""
        ...

    def sweep(self, service: ServiceGiven[A]) -> list[str]:
        """See :meth:`Platform.sweep`: all that its scheduler lists under its label."""
        from dispatcher.platforms.allocations.sweeping import sweep

        return sweep(self.allocator(service), service.label)

    def driver(self, given: Given[A], drivers: Drivers) -> Driver:
        """See :meth:`Platform.driver`: an agent in an allocation."""
        pool = drivers.shared(given.section, partial(self._pool, given, drivers))
        slots = given.config.slots
        process = pool.process(
            given.worker, given.records, agents_home=given.home, slots=slots, load=drivers.load
        )
        return drivers.agent(process)

    def _pool(self, given: Given[A], drivers: Drivers) -> AllocationPool:
        from dispatcher.platforms.allocations.pool import AllocationPool
        from dispatcher.platforms.given import service_given

        service = service_given(given)
        make = partial(self.allocator, service)
        bounds = given.section.allocations.bounds
        return AllocationPool(
            make,
            service.label,
            bounds,
            leads=given.leads,
            wall=drivers.now,
            probes=self.probe_needs(given),
        )
