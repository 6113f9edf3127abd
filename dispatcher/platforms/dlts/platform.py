"""The platform ``dlts``: an agent in each of several jobs of a DLTS cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from dispatcher.platforms.dlts.section import DltsSection
from dispatcher.platforms.http_jobs.platform import HttpJobsPlatform

if TYPE_CHECKING:
    from dispatcher.findings import Finding
    from dispatcher.platforms.http_jobs.jobs import JobService


class DltsPlatform(HttpJobsPlatform[DltsSection]):
    """The platform of DLTS clusters. Their jobs have no secrets, and one node each."""

    protocol = 2
    section = DltsSection
    has_nodes: ClassVar[bool] = False

    def jobs(self, section: DltsSection, label: str) -> JobService:
        """See :meth:`HttpJobsPlatform.jobs`."""
        from dispatcher.platforms.dlts.jobs import DltsJobs

        return DltsJobs(section, label)

    def findings(self, section: DltsSection) -> Iterable[Finding]:
        """See :meth:`HttpJobsPlatform.findings`: user, cluster, team, and its GPUs."""
        from dispatcher.platforms.dlts.inspection import inspect_team

        return inspect_team(section)
