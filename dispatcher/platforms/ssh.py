"""The platform ``ssh``: an agent on each of several machines, reached by SSH."""

from __future__ import annotations

from dispatcher.backends.agents import Visit
from dispatcher.backends.ssh import SshVisit
from dispatcher.experiment.ssh_service import MachineConfig, SshServiceConfig
from dispatcher.platforms.given import Given
from dispatcher.platforms.platform import AgentPlatform
from dispatcher.wiring.machines import machine_of


class SshPlatform(AgentPlatform[SshServiceConfig]):
    """A visit is a login, and a tunnel for as long as it lasts."""

    protocol = 1
    section = SshServiceConfig

    def visit(self, given: Given[SshServiceConfig]) -> Visit:
        """Not logged in yet."""
        assert isinstance(given.part, MachineConfig)
        assert given.door is not None
        machine = machine_of(given.worker, given.part)
        return SshVisit(machine, given.door, given.archives, given.token)


SSH_PLATFORM = SshPlatform()
