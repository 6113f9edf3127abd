"""The bases of platforms of clusters, whose agents may have several ways to the head."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, TypeVar

from dispatcher.experiment.fields import Section
from dispatcher.experiment.platform_base import KeyProblem, Reach
from dispatcher.platforms.clusters.checks import check_environment, check_folders, check_way
from dispatcher.platforms.clusters.jump import jump_of
from dispatcher.platforms.clusters.section import ClusterService
from dispatcher.platforms.platform import AllocationPlatform
from trial_runtime.endpoint import JumpHost
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.platforms.allocations.probe import ProbeNeeds
    from dispatcher.platforms.given import Given
    from dispatcher.ports import AttemptFiles

C = TypeVar("C", bound=ClusterService)


def probe_needs_of(given: Given[C], *, brings_modules: bool) -> ProbeNeeds | None:
    """Return what a place of a cluster is looked over for; None if its section does not want it.

    Args:
        given: that of a worker.
        brings_modules: whether modules that a place lacks are brought.
    """
    section = given.section
    if not section.probe:
        return None
    from dispatcher.platforms.allocations.probe import ProbeNeeds
    from dispatcher.platforms.given import service_given

    return ProbeNeeds(
        given.needs,
        section.python_there,
        section.bring_code,
        brings_modules=brings_modules,
        gpus_asked=section.gpus_asked,
        record=service_given(given).probed,
    )


class ClusterPlatform(AllocationPlatform[C]):
    """A platform whose agents run on other machines, and try several ways to the head in turn."""

    takes_jumps: ClassVar[bool] = True

    def ways_of(self, part: Section, listens_on: str) -> tuple[Reach, ...]:
        """See :meth:`FilePlatform.ways_of`: the one that the section names; else directly, by its
        jump host, by the shared folder, as far as there is one."""
        if not isinstance(part, ClusterService) or part.channel != "auto":
            return (self.reach_of(part),)
        ways: list[Reach] = ["tcp"] if part.is_reached(listens_on) else []
        if part.jump is not None:
            ways.append("jump")
        if self.shares_folders:
            ways.append("folder")
        return tuple(ways) or ("tcp",)

    def jump(self, part: Section, door: tuple[str, int]) -> tuple[str, JumpHost]:
        """See :meth:`FilePlatform.jump`: the one of the section."""
        assert isinstance(part, ClusterService)
        assert part.jump is not None
        return jump_of(part.jump, door)


class SharedFolderPlatform(ClusterPlatform[C]):
    """A platform of clusters whose nodes see the code, the weights and a shared folder at the paths
    that they have here."""

    shares_folders: ClassVar[bool] = True
    own_resources: ClassVar[bool] = False

    def check(self, section: C, at: JsonPath, experiment: AllKeys) -> Iterable[KeyProblem]:
        """See :meth:`Platform.check`: references of the environment, a way to the head, and what
        nodes do not see."""
        yield from check_environment(section, at)
        yield from check_way(section, at, experiment, by_folder=True)
        yield from check_folders(section, at, experiment)

    def probe_needs(self, given: Given[C]) -> ProbeNeeds | None:
        """See :meth:`AllocationPlatform.probe_needs`."""
        return probe_needs_of(given, brings_modules=given.section.bring_code)

    def files(self, given: Given[C], trial: int, attempt: int) -> AttemptFiles | None:
        """See :meth:`Platform.files`: they lie in the worker's folder, which nodes share."""
        from dispatcher.platforms.files import files_in

        return files_in(given, given.home, trial, attempt)
