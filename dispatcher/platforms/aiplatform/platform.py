"""The platform ``aiplatform``: an agent in each of several jobs of AI Platform Training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dispatcher.platforms.aiplatform.section import AiTrainingSection
from dispatcher.platforms.google_cloud.platform import GooglePlatform

if TYPE_CHECKING:
    from dispatcher.platforms.google_cloud.jobs import GoogleJobs


class AiTrainingPlatform(GooglePlatform[AiTrainingSection]):
    """The platform of AI Platform Training, which came before Vertex AI."""

    protocol = 2
    section = AiTrainingSection

    def jobs(self, section: AiTrainingSection, label: str) -> GoogleJobs:
        """See :meth:`HttpJobsPlatform.jobs`."""
        from dispatcher.platforms.aiplatform.jobs import AiTrainingJobs, AiTrainingJobsWithSecrets

        shares = section.shared_folder is not None
        return (AiTrainingJobs if shares else AiTrainingJobsWithSecrets)(section, label)
