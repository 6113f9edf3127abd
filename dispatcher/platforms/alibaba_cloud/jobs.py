"""Jobs of a service of Alibaba Cloud, in what those of all its services have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from dispatcher.findings import Finding
from dispatcher.http_services.alibaba import ID, URI, AcsSigner, error_of_alibaba
from dispatcher.http_services.client import HttpAnswer, HttpClient
from dispatcher.http_services.errors import NotLoggedIn
from dispatcher.platforms.alibaba_cloud.section import AlibabaService
from dispatcher.platforms.http_jobs.credentials import address_of
from dispatcher.platforms.http_jobs.jobs import JobService


class AlibabaJobs(JobService):
    """Jobs of one service of Alibaba Cloud, see :class:`JobService`.

    Args:
        section: the service's part of the file.

    Attributes:
        version: of the interface.
    """

    version: ClassVar[str]

    def __init__(self, section: AlibabaService) -> None:
        super().__init__(client_of(section))

    @abstractmethod
    def findings(self) -> Iterator[Finding]:
        """Yield what is found of the service before the start, beside that it answers. Raises
        ``BackendError``."""
        ...

    def ask(
        self, operation: str, path: str, asked: str, method: str = "GET", **more: Any
    ) -> HttpAnswer:
        """Ask for an operation of the interface, whose name is signed as well.

        Args:
            operation: its name.
            path: of the request.
            asked: what is asked, for people.
            method: of HTTP.
            more: see :meth:`~dispatcher.http_services.client.HttpClient.ask`.
        """
        headers = {"x-acs-action": operation, "x-acs-version": self.version}
        return self.client.ask(method, path, asked=asked, headers=headers, **more)


def client_of(section: AlibabaService) -> HttpClient:
    """The client of a section's service. Raises ``PermanentBackendError``."""
    keys = section.key_source
    if keys is None:
        hint = "write 'accessKeyId: env:NAME' and 'accessKeySecret: env:NAME'"
        raise NotLoggedIn(f"no access key is named, and neither {ID} nor {URI} is set", hint=hint)
    signer = AcsSigner(keys)
    address = address_of(section, section.server)
    client = HttpClient(address, signer, error_of=error_of_alibaba)
    signer.follow(client.times)
    return client
