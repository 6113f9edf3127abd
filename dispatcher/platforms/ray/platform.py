"""The platform ``ray``: an agent in each of several actors of a cluster."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.platforms.clusters.platform import SharedFolderPlatform
from dispatcher.platforms.ray.options import PLACES_ONE
from dispatcher.platforms.ray.section import RayServiceConfig
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.findings import Finding
    from dispatcher.platforms.allocations.allocation import Allocator
    from dispatcher.platforms.given import Given, ServiceGiven
    from dispatcher.ports import AttemptFiles

#: Longest time of an answer while a cluster is looked at before anything starts (seconds).
INSPECTION_S = 30.0


class RayPlatform(SharedFolderPlatform[RayServiceConfig]):
    """The platform of a cluster whose nodes see a shared folder, the code and the weights at the
    paths that they have here. Ray itself is needed by a program beside the head only."""

    protocol = 2
    section = RayServiceConfig
    has_nodes: ClassVar[bool] = True

    def check(
        self, section: RayServiceConfig, at: JsonPath, experiment: AllKeys
    ) -> Iterable[KeyProblem]:
        """See :meth:`SharedFolderPlatform.check`; and the Python here."""
        if section.python is not None and shutil.which(section.python) is None:
            text = f"names {section.python!r}, which is no program on this machine"
            yield KeyProblem((*at, "python"), text)
        if section.starts:
            yield from _check_start(section, at, experiment)
        for name in sorted(PLACES_ONE & section.options.keys()):
            if experiment.trial_nodes > 1:
                text = "places one actor, and 'trialNodes' spreads those of a trial over nodes"
                yield KeyProblem((*at, "options", name), text, "leave it out")
        yield from super().check(section, at, experiment)

    def inspect(self, section: RayServiceConfig) -> Iterable[Finding]:
        """See :meth:`Platform.inspect`: whether the cluster is there, and has such a place."""
        from dispatcher.platforms.ray.conversation import conversation_about
        from dispatcher.platforms.ray.inspection import inspect_cluster

        nowhere = Path(os.devnull)
        talk = conversation_about(section, nowhere, limit_s=INSPECTION_S, local=nowhere)
        return inspect_cluster(section, talk)

    def files(
        self, given: Given[RayServiceConfig], trial: int, attempt: int
    ) -> AttemptFiles | None:
        """See :meth:`SharedFolderPlatform.files`; a shell only where nodes are this machine."""
        from dispatcher.platforms.ray.files import FilesOfActor

        files = super().files(given, trial, attempt)
        if files is None or given.section.nodes_are_here:
            return files
        return FilesOfActor(files, f"{given.home}/trials/{trial}/{attempt}", given.worker)

    def allocator(self, service: ServiceGiven[RayServiceConfig]) -> Allocator:
        """See :meth:`AllocationPlatform.allocator`: by a driver of Ray's on this machine."""
        from dispatcher.platforms.ray.allocator import RayAllocator

        return RayAllocator(service)

    def sweep(self, service: ServiceGiven[RayServiceConfig]) -> list[str]:
        """See :meth:`Platform.sweep`: a cluster of its own ends with what ran there."""
        names = super().sweep(service)
        if names and service.section.starts:
            allocator = self.allocator(service)
            try:
                allocator.clear()
            finally:
                allocator.close()
        return names


def _check_start(
    section: RayServiceConfig, at: JsonPath, experiment: AllKeys
) -> Iterable[KeyProblem]:
    """Yield what a cluster that is started for the experiment lacks."""
    hint = "name the 'address' of a cluster that has it"
    if section.actor_resources:
        names = ", ".join(section.actor_resources)
        text = f"names {names}, which a cluster that is started for the experiment lacks"
        yield KeyProblem((*at, "actorResources"), text, hint)
    if experiment.trial_nodes > 1:
        text = f"is one of one node, and 'trialNodes' is {experiment.trial_nodes}"
        yield KeyProblem((*at, "address"), text, "name the 'address' of a cluster with more")
