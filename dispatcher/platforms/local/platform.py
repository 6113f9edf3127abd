"""The platform ``local``: an agent on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dispatcher.experiment.platform_base import Reach
from dispatcher.platforms.local.section import LocalServiceConfig
from dispatcher.platforms.platform import Platform

if TYPE_CHECKING:
    from dispatcher.platforms.driver import Driver, Drivers
    from dispatcher.platforms.given import Given
    from dispatcher.platforms.worker_files import WorkerFiles


class LocalPlatform(Platform[LocalServiceConfig]):
    """The platform of this machine. Its agent is a child of the head, and needs no visits."""

    protocol = 2
    section = LocalServiceConfig
    reach: ClassVar[Reach] = "socket"
    this_machine: ClassVar[bool] = True
    own_resources: ClassVar[bool] = False

    def worker_files(self, given: Given[LocalServiceConfig]) -> WorkerFiles:
        """See :meth:`Platform.worker_files`: they lie in the experiment's folder."""
        from dispatcher.platforms.local.files import FilesHere

        return FilesHere(given)

    def driver(self, given: Given[LocalServiceConfig], drivers: Drivers) -> Driver:
        """See :meth:`Platform.driver`: the agent's process is found by its record, or started."""
        from dispatcher.platforms.local.process import LocalProcess

        return drivers.agent(LocalProcess(given.folder, given.worker, given.config.run_folder))
