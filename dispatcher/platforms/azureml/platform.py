"""The platform ``azureml``: an agent in each of several command jobs of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dispatcher.platforms.azureml.section import AzureMlSection
from dispatcher.platforms.http_jobs.platform import HttpJobsPlatform

if TYPE_CHECKING:
    from dispatcher.platforms.http_jobs.jobs import JobService


class AzureMlPlatform(HttpJobsPlatform[AzureMlSection]):
    """The platform of Azure Machine Learning, whose jobs have no secrets: keys lie in the shared
    folder."""

    protocol = 2
    section = AzureMlSection
    account_keys: ClassVar[tuple[str, ...]] = ("workspace", "resourceGroup", "subscriptionId")

    def jobs(self, section: AzureMlSection, label: str) -> JobService:
        """See :meth:`HttpJobsPlatform.jobs`."""
        from dispatcher.platforms.azureml.jobs import AzureMlJobs

        return AzureMlJobs(section, label)
