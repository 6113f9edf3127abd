"""The platform ``ssh``: an agent on each of several machines, reached by SSH."""

from __future__ import annotations

from typing import ClassVar

from dispatcher.backends.agents import Visit
from dispatcher.backends.ssh import SshVisit
from dispatcher.experiment.fields import Section
from dispatcher.experiment.ssh_service import MachineConfig, SshServiceConfig
from dispatcher.platforms.given import Given
from dispatcher.platforms.platform import AgentPlatform, Reach
from dispatcher.wiring.machines import machine_of


class SshPlatform(AgentPlatform[SshServiceConfig]):
    """The platform of machines. A visit is a login, and a tunnel for as long as it lasts."""

    protocol = 1
    section = SshServiceConfig
    reach: ClassVar[Reach] = "tunnel"

    def reach_of(self, part: Section) -> Reach:
        """A tunnel, unless the machine names an address of the head."""
        return "tcp" if isinstance(part, MachineConfig) and part.head_address else self.reach

    def visit(self, given: Given[SshServiceConfig]) -> Visit:
        """A visit that is not logged in yet."""
        assert isinstance(given.part, MachineConfig)
        way = given.tunnel or given.door
        assert way is not None
        machine = machine_of(given.worker, given.part)
        return SshVisit(machine, way, given.archives, given.token)


SSH_PLATFORM = SshPlatform()
