"""The base of platforms of Alibaba Cloud: what is looked for here, and asked there, before anything
is ordered."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from dispatcher.errors import BackendError
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.findings import Finding, Severity
from dispatcher.http_services.alibaba import ID, URI
from dispatcher.http_services.errors import NotLoggedIn
from dispatcher.platforms.alibaba_cloud.section import AlibabaService
from dispatcher.platforms.http_jobs.platform import HttpJobsPlatform
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.platforms.alibaba_cloud.jobs import AlibabaJobs

C = TypeVar("C", bound=AlibabaService)


class AlibabaPlatform(HttpJobsPlatform[C]):
    """A platform of jobs of Alibaba Cloud. One of ours writes :meth:`jobs`."""

    @abstractmethod
    def jobs(self, section: C, label: str) -> AlibabaJobs:
        """See :meth:`HttpJobsPlatform.jobs`."""
        ...

    def check(self, section: C, at: JsonPath, experiment: AllKeys) -> Iterator[KeyProblem]:
        """See :meth:`Platform.check`: a key to the service, as well."""
        yield from super().check(section, at, experiment)
        if section.key_source is None:
            text = f"is missing, and neither {ID} nor {URI} is set here"
            hint = "write 'accessKeyId: env:NAME' and 'accessKeySecret: env:NAME'"
            yield KeyProblem((*at, "accessKeyId"), text, hint)

    def findings(self, section: C) -> Iterator[Finding]:
        """See :meth:`HttpJobsPlatform.findings`: whether the service knows us and lists jobs, and
        what its jobs find of it."""
        try:
            jobs = self.jobs(section, "bequeath-inspects")
            try:
                jobs.list()
                yield Finding("platform", Severity.OK, f"{jobs.where} knows us, and lists jobs")
                yield from jobs.findings()
            finally:
                jobs.close()
        except BackendError as error:
            is_key = isinstance(error, NotLoggedIn)
            keys = ("accessKeyId",) if is_key else ("region", "address", "workspaceId")
            paths = tuple((key,) for key in keys)
            yield Finding("platform", Severity.PROBLEM, error.message, error.hint, paths)
