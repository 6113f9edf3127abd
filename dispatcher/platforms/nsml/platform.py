"""The platform ``nsml``: an agent in each of several runs of a project of CLOVA NSML."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dispatcher.platforms.http_jobs.platform import HttpJobsPlatform
from dispatcher.platforms.nsml.section import NsmlSection

if TYPE_CHECKING:
    from dispatcher.findings import Finding
    from dispatcher.platforms.http_jobs.jobs import JobService


class NsmlPlatform(HttpJobsPlatform[NsmlSection]):
    """The platform of CLOVA NSML. Its runs have no secrets."""

    protocol = 2
    section = NsmlSection

    def jobs(self, section: NsmlSection, label: str) -> JobService:
        """See :meth:`HttpJobsPlatform.jobs`."""
        from dispatcher.platforms.nsml.jobs import NsmlJobs

        return NsmlJobs(section, label)

    def findings(self, section: NsmlSection) -> Iterable[Finding]:
        """See :meth:`HttpJobsPlatform.findings`: keys, the project, and its share."""
        from dispatcher.platforms.nsml.inspection import inspect_project

        return inspect_project(section)
