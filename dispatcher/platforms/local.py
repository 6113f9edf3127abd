"""The platform ``local``: an agent on this machine."""

from __future__ import annotations

from typing import ClassVar

from dispatcher.backends.agents import AgentProcess
from dispatcher.backends.local import LocalProcess
from dispatcher.experiment.local_service import LocalServiceConfig
from dispatcher.platforms.given import Given
from dispatcher.platforms.platform import Platform, Reach


class LocalPlatform(Platform[LocalServiceConfig]):
    """The platform of this machine. Its agent is a child of the head, and needs no visits."""

    protocol = 1
    section = LocalServiceConfig
    reach: ClassVar[Reach] = "socket"

    def process(self, given: Given[LocalServiceConfig]) -> AgentProcess:
        """The agent's process, found by its record, or started."""
        return LocalProcess(given.folder, given.worker, given.config.run_folder)


LOCAL_PLATFORM = LocalPlatform()
