"""The platform ``frameworkcontroller``: an agent in each of several Frameworks of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.platforms.frameworkcontroller.section import FrameworkSection
from dispatcher.platforms.kubernetes.platform import PodPlatform
from dispatcher.platforms.kubernetes.roles import RolesDoNotFit
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys


class FrameworkPlatform(PodPlatform[FrameworkSection]):
    """The platform whose allocations are Frameworks."""

    section = FrameworkSection

    def check(
        self, section: FrameworkSection, at: JsonPath, experiment: AllKeys
    ) -> Iterable[KeyProblem]:
        """See :meth:`Platform.check`: as for pods, and whether roles are those of a trial."""
        yield from super().check(section, at, experiment)
        yield from _check_roles(section, at, experiment.trial_nodes)


def _check_roles(section: FrameworkSection, at: JsonPath, nodes: int) -> Iterator[KeyProblem]:
    names = [each.name for each in section.roles]
    if nodes == 1 and len(names) > 1:
        text = f"is {names[1]!r}, and a trial has one pod"
        hint = "write 'trialNodes': how many pods of all roles a trial has"
        yield KeyProblem((*at, "roles", 1, "name"), text, hint)
        return
    try:
        section.roles_of(nodes)
    except RolesDoNotFit as error:
        place = (*at, "roles", names.index(error.role), "name") if names else (*at, "roles")
        hint = "let 'trialNodes' be the sum, or leave 'replicas' of one of them out"
        yield KeyProblem(place, f"is {error.role!r}: roles {error}", hint)
