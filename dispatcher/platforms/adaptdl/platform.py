"""The platform ``adaptdl``: an agent in each of several AdaptDLJobs of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.platforms.adaptdl.section import AdaptdlSection
from dispatcher.platforms.kubernetes.platform import PodPlatform
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys


class AdaptdlPlatform(PodPlatform[AdaptdlSection]):
    """The platform whose allocations are AdaptDLJobs."""

    section = AdaptdlSection

    def check(
        self, section: AdaptdlSection, at: JsonPath, experiment: AllKeys
    ) -> Iterable[KeyProblem]:
        """See :meth:`Platform.check`: as for pods, and whether a trial has pods enough."""
        yield from super().check(section, at, experiment)
        least, most = section.min_replicas, experiment.trial_nodes
        if least is not None and least > most:
            yield KeyProblem(
                (*at, "minReplicas"),
                f"is {least}, and a trial has {most} at most ('trialNodes')",
                f"write 'trialNodes: {least}' beside 'trainingService', or leave it out",
            )
