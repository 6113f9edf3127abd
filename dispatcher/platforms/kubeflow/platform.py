"""The platform ``kubeflow``: an agent in each of several jobs of the Kubeflow Training Operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.platforms.kubeflow.section import KubeflowSection
from dispatcher.platforms.kubernetes.platform import PodPlatform
from dispatcher.platforms.kubernetes.roles import RolesDoNotFit
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys


class KubeflowPlatform(PodPlatform[KubeflowSection]):
    """The platform whose allocations are PyTorchJobs and TFJobs."""

    section = KubeflowSection

    def check(
        self, section: KubeflowSection, at: JsonPath, experiment: AllKeys
    ) -> Iterable[KeyProblem]:
        """See :meth:`Platform.check`: as for pods, and whether roles are those of a trial."""
        yield from super().check(section, at, experiment)
        yield from _check_roles(section, at, experiment.trial_nodes)


def _check_roles(section: KubeflowSection, at: JsonPath, nodes: int) -> Iterator[KeyProblem]:
    names = [role.name for role in section.roles]
    others = [name for name in names if name != section.first_role]
    if nodes == 1 and others:
        text = f"names {others[0]!r}, and a trial has one pod"
        hint = "write 'trialNodes': how many pods of all roles a trial has"
        yield KeyProblem((*at, "roles"), text, hint)
        return
    try:
        section.roles_of(nodes)
    except RolesDoNotFit as error:
        hint = "let 'trialNodes' be the sum, or leave 'replicas' of 'worker' out"
        yield KeyProblem((*at, "roles", names.index(error.role)), str(error), hint)
