"""The base classes of platforms, which entry points name, and which ours have, too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Literal

from dispatcher.backends.agents import Visit
from dispatcher.backends.service import ServiceBackend
from dispatcher.experiment.fields import Section
from dispatcher.platforms.given import Given, S
from dispatcher.ports import AttemptFiles

Reach = Literal["socket", "tunnel", "tcp"]
"""How a worker reaches the head: by its socket file, which processes of this machine can open; by a
tunnel of its platform that ends at another socket file, with CURVE; or by TCP with CURVE."""


class Platform(ABC, Generic[S]):
    """A kind of place where trials run: an :class:`AgentPlatform`, a :class:`BackendPlatform`,
    or this machine.

    An object of a subclass is what an entry point of the group ``bequeath.backends`` names; the
    entry point's name is the word that is written as ``platform`` in the experiment file.

    Attributes:
        protocol: the version that it was written for: a literal number, not our constant.
        section: the class of its section of the experiment file. Its fields are checked with
            ``file:line:column`` as ours are; its ``planned`` says which workers there are.
        reach: the way by which its workers reach the head.
    """

    protocol: int
    section: type[S]
    reach: ClassVar[Reach] = "tcp"

    def reach_of(self, part: Section) -> Reach:
        """The way by which one worker reaches the head, where that depends on its section."""
        return self.reach

    def files(self, given: Given[S], trial: int, attempt: int) -> AttemptFiles | None:
        """Files of an attempt where it runs or ran, and a shell there; None if this platform
        does not offer that. Must not block.

        Args:
            given: that of its worker.
            trial: the number of its trial.
            attempt: its number within the trial.
        """
        return None


class AgentPlatform(Platform[S]):
    """A platform whose trials run below our agent: it gets an agent's process somewhere and sees
    that it is gone, and no more. All visits are made in a thread of their own, one for each worker
    (:class:`~dispatcher.backends.agents.VisitedProcess`)."""

    @abstractmethod
    def visit(self, given: Given[S]) -> Visit:
        """Make one visit of the worker's place. Called in the thread of that worker alone, again
        for each visit; an exception harms this worker only."""
        ...


class BackendPlatform(Platform[S]):
    """A platform that runs attempts itself, without our agent: a service with its own interface.

    Its backends are called in a thread of their own, one for each worker, and may block there.
    """

    @abstractmethod
    def backend(self, given: Given[S]) -> ServiceBackend:
        """Make the backend of one worker; called when a worker is wanted there first, and again
        after one has failed. An exception harms this worker only."""
        ...
