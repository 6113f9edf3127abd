"""The platform ``vertex``: an agent in each of several custom jobs of Vertex AI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dispatcher.platforms.google_cloud.platform import GooglePlatform
from dispatcher.platforms.vertex.section import VertexSection

if TYPE_CHECKING:
    from dispatcher.platforms.google_cloud.jobs import GoogleJobs


class VertexPlatform(GooglePlatform[VertexSection]):
    """The platform of Vertex AI."""

    protocol = 2
    section = VertexSection

    def jobs(self, section: VertexSection, label: str) -> GoogleJobs:
        """See :meth:`HttpJobsPlatform.jobs`."""
        from dispatcher.platforms.vertex.jobs import VertexJobs, VertexJobsWithSecrets

        shares = section.shared_folder is not None
        return (VertexJobs if shares else VertexJobsWithSecrets)(section, label)
