"""The platform ``openpai``: an agent in each of several jobs of an OpenPAI cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from dispatcher.platforms.http_jobs.platform import HttpJobsPlatform
from dispatcher.platforms.openpai.section import OpenPaiSection

if TYPE_CHECKING:
    from dispatcher.findings import Finding
    from dispatcher.platforms.http_jobs.jobs import JobService


class OpenPaiPlatform(HttpJobsPlatform[OpenPaiSection]):
    """The platform of OpenPAI clusters, whose jobs have secrets of their own."""

    protocol = 2
    section = OpenPaiSection
    has_secrets: ClassVar[bool] = True
    has_output: ClassVar[bool] = True

    def jobs(self, section: OpenPaiSection, label: str) -> JobService:
        """See :meth:`HttpJobsPlatform.jobs`."""
        from dispatcher.platforms.openpai.jobs import OpenPaiJobs

        return OpenPaiJobs(section, label)

    def findings(self, section: OpenPaiSection) -> Iterable[Finding]:
        """See :meth:`HttpJobsPlatform.findings`: version, user, virtual cluster and storages."""
        from dispatcher.platforms.openpai.inspection import inspect_cluster

        return inspect_cluster(section)
