"""The platform ``slurm``: an agent in each of several jobs of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.platforms.clusters.platform import SharedFolderPlatform
from dispatcher.platforms.logins.checks import check_login
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.findings import Finding
    from dispatcher.platforms.allocations.allocation import Allocator
    from dispatcher.platforms.given import Given, ServiceGiven
    from dispatcher.platforms.worker_files import WorkerFiles

#: Longest time of a command while somebody waits for a check (seconds).
INSPECTION_S = 15.0


class SlurmPlatform(SharedFolderPlatform[SlurmServiceConfig]):
    """The platform of a cluster whose nodes see the experiment's folder, the code and the weights
    at the paths that they have here."""

    protocol = 2
    section = SlurmServiceConfig
    has_nodes: ClassVar[bool] = True

    def check(
        self, section: SlurmServiceConfig, at: JsonPath, experiment: AllKeys
    ) -> Iterable[KeyProblem]:
        """See :meth:`Platform.check`: as of any cluster, and what the login needs here."""
        yield from super().check(section, at, experiment)
        if section.login is not None:
            yield from check_login((*at, "login"), section.login)

    def inspect(self, section: SlurmServiceConfig) -> Iterable[Finding]:
        """See :meth:`Platform.inspect`: whether the cluster would take such a job."""
        return self._inspect(section, None)

    def inspect_for(self, section: SlurmServiceConfig, experiment: AllKeys) -> Iterable[Finding]:
        """See :meth:`Platform.inspect_for`: with as many nodes, and for as long, as trials need."""
        return self._inspect(section, experiment)

    def _inspect(
        self, section: SlurmServiceConfig, experiment: AllKeys | None
    ) -> Iterable[Finding]:
        from dispatcher.platforms.slurm.inspection import ANY_TRIALS, TrialsAsked, inspect_cluster
        from dispatcher.platforms.slurm.login_node import command_line_of

        asked = ANY_TRIALS if experiment is None else TrialsAsked.of(experiment)
        shell = command_line_of(section, INSPECTION_S)
        try:
            yield from inspect_cluster(section, shell, asked)
        finally:
            shell.close()

    def allocator(self, service: ServiceGiven[SlurmServiceConfig]) -> Allocator:
        """See :meth:`AllocationPlatform.allocator`: by Slurm's commands, wherever they are."""
        from dispatcher.platforms.slurm.allocator import SlurmAllocator

        return SlurmAllocator(service)

    def worker_files(self, given: Given[SlurmServiceConfig]) -> WorkerFiles:
        """See :meth:`Platform.worker_files`: they lie in the worker's folder, which nodes share; a
        shell is opened on the node."""
        from dispatcher.platforms.slurm.shell import FilesInJobs

        return FilesInJobs.of_service(given)
