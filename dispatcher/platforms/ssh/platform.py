"""The platform ``ssh``: an agent on each of several machines, reached by SSH."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from dispatcher.experiment.fields import Section
from dispatcher.experiment.platform_base import KeyProblem, Reach
from dispatcher.platforms.platform import AgentPlatform
from dispatcher.platforms.ssh.section import MachineConfig, SshServiceConfig
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.platforms.agents.visit import Visit
    from dispatcher.platforms.given import Given
    from dispatcher.platforms.host import ReachableHost
    from dispatcher.platforms.worker_files import WorkerFiles


class SshPlatform(AgentPlatform[SshServiceConfig]):
    """The platform of machines. A visit is a login, and a tunnel for as long as it lasts."""

    protocol = 2
    section = SshServiceConfig
    reach: ClassVar[Reach] = "tunnel"
    sends_code: ClassVar[bool] = True
    own_resources: ClassVar[bool] = False

    def check(
        self, section: SshServiceConfig, at: JsonPath, experiment: AllKeys
    ) -> Iterable[KeyProblem]:
        """See :meth:`Platform.check`: key files, references, and folders in the same order."""
        from dispatcher.platforms.ssh.checks import check_machines

        return check_machines(section, at, len(experiment.weights_read_roots))

    def reach_of(self, part: Section) -> Reach:
        """A tunnel, unless the machine names an address of the head."""
        return "tcp" if isinstance(part, MachineConfig) and part.head_address else self.reach

    def host(self, worker: str, part: Section) -> ReachableHost:
        """See :meth:`Platform.host`: every worker has a machine."""
        from dispatcher.platforms.logins.targets import label_of
        from dispatcher.platforms.ssh.hosts import SshHost
        from dispatcher.platforms.ssh.machine import machine_of

        assert isinstance(part, MachineConfig)
        return SshHost(machine_of(worker, part), label_of(part))

    def worker_files(self, given: Given[SshServiceConfig]) -> WorkerFiles:
        """See :meth:`Platform.worker_files`: one login for all attempts."""
        from dispatcher.platforms.ssh.files import FilesThere
        from dispatcher.platforms.ssh.machine import machine_of

        assert isinstance(given.part, MachineConfig)
        return FilesThere(machine_of(given.worker, given.part), given.config)

    def visit(self, given: Given[SshServiceConfig]) -> Visit:
        """A visit that is not logged in yet."""
        from dispatcher.platforms.ssh.machine import machine_of
        from dispatcher.platforms.ssh.visit import SshVisit

        assert isinstance(given.part, MachineConfig)
        way = given.tunnel or given.door
        assert way is not None
        machine = machine_of(given.worker, given.part)
        return SshVisit(machine, way, given.archives, given.token)
