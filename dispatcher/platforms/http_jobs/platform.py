"""The base of platforms whose allocations are jobs of a service over HTTP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, TypeVar

from dispatcher.errors import BackendError
from dispatcher.experiment.fields import Section
from dispatcher.experiment.keys import file_key
from dispatcher.experiment.platform_base import KeyProblem, Reach
from dispatcher.experiment.references import ENV, FILE
from dispatcher.findings import Finding, Severity
from dispatcher.http_services.errors import NotLoggedIn
from dispatcher.platforms.clusters.platform import ClusterPlatform, probe_needs_of
from dispatcher.platforms.http_jobs.section import HttpJobsService
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.platforms.allocations.allocation import Allocator
    from dispatcher.platforms.allocations.probe import ProbeNeeds
    from dispatcher.platforms.given import Given, ServiceGiven
    from dispatcher.platforms.http_jobs.jobs import JobService
    from dispatcher.ports import AttemptFiles

C = TypeVar("C", bound=HttpJobsService)


class HttpJobsPlatform(ClusterPlatform[C]):
    """A platform of jobs of a service. One of ours writes :meth:`jobs`.

    Attributes:
        has_secrets: whether its service has secrets for what an agent must know; else the section
            needs a shared folder.
        has_output: whether its service says what jobs have printed (``JobService.output``).
        packages: modules that are needed here, and the extra of ours that has each.
        account_keys: keys of its section that say where the service is, and in whose account.
    """

    shares_folders: ClassVar[bool] = True
    own_resources: ClassVar[bool] = False
    has_nodes: ClassVar[bool] = True
    has_secrets: ClassVar[bool] = False
    has_output: ClassVar[bool] = False
    packages: ClassVar[Mapping[str, str]] = {"urllib3": "http"}
    account_keys: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def jobs(self, section: C, label: str) -> JobService:
        """Make what asks the service for jobs; nothing is asked yet. May read files, and raise
        ``BackendError``.

        Args:
            section: the service's part of the file.
            label: the beginning of the names of all its jobs.
        """
        ...

    def findings(self, section: C) -> Iterable[Finding]:
        """Ask its service before anything is ordered: whether it knows us, and has what the section
        names (:meth:`JobService.findings`). May raise ``BackendError``."""
        jobs = self.jobs(section, "bequeath-inspects")
        try:
            yield from jobs.findings()
        except NotLoggedIn as error:
            yield _problem(error, "token")
        except BackendError as error:
            yield _problem(error, *self.account_keys)
        finally:
            jobs.close()

    def check(self, section: C, at: JsonPath, experiment: AllKeys) -> Iterable[KeyProblem]:
        """See :meth:`Platform.check`: references, folders that jobs see, and a way to the head."""
        from dispatcher.platforms.http_jobs.checks import check_service

        return check_service(
            section, at, experiment, has_secrets=self.has_secrets, packages=self.packages
        )

    def ways_of(self, part: Section, listens_on: str) -> tuple[Reach, ...]:
        """See :meth:`ClusterPlatform.ways_of`: by a folder only where one is shared."""
        ways = super().ways_of(part, listens_on)
        shared = isinstance(part, HttpJobsService) and part.shared_folder is not None
        if shared or len(ways) == 1:
            return ways
        return tuple(way for way in ways if way != "folder")

    def probe_needs(self, given: Given[C]) -> ProbeNeeds | None:
        """See :meth:`AllocationPlatform.probe_needs`: where its answer can be had."""
        if given.section.shared_folder is None and not self.has_output:
            return None
        return probe_needs_of(given, brings_modules=given.section.bring_code)

    def files(self, given: Given[C], trial: int, attempt: int) -> AttemptFiles | None:
        """See :meth:`Platform.files`: those of the shared folder; others are asked of agents."""
        from dispatcher.platforms.files import files_in

        if given.section.shared_folder is None:
            return None
        return files_in(given, given.home, trial, attempt)

    def allocator(self, service: ServiceGiven[C]) -> Allocator:
        """See :meth:`AllocationPlatform.allocator`: asks its service for jobs."""
        from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator

        return HttpJobsAllocator(service, self.jobs(service.section, service.label))

    def inspect(self, section: C) -> Iterable[Finding]:
        """See :meth:`Platform.inspect`: what its service says, and the ways to the head."""
        from dispatcher.platforms.clusters.inspection import inspect_ways

        try:
            yield from self.findings(section)
        except NotLoggedIn as error:
            yield _problem(error, *_references_in(section))
        yield from inspect_ways(section, ())


def _references_in(section: HttpJobsService) -> list[str]:
    """The keys of a section that say who asks: those with references to secrets."""
    kind = type(section)
    given = ((name, getattr(section, name)) for name in kind.model_fields)
    return [
        file_key(kind, name)
        for name, value in given
        if isinstance(value, str) and value.startswith((ENV, FILE))
    ]


def _problem(error: BackendError, *keys: str) -> Finding:
    paths = tuple((key,) for key in keys)
    return Finding("platform", Severity.PROBLEM, error.message, error.hint, paths)
