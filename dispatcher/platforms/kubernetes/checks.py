"""Checks of what a section needs of this machine: its kubeconfig, references, and a way for pods to
reach the head. No server is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.platforms.clusters.checks import check_environment, check_way
from dispatcher.platforms.kubernetes.api.kubeconfig import find_access
from dispatcher.platforms.kubernetes.section import KubernetesService
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys


def check_section(
    section: KubernetesService, at: JsonPath, experiment: AllKeys
) -> Iterator[KeyProblem]:
    """Yield what is missing here, and what does not fit the rest of the file.

    Args:
        section: of the service.
        at: its path.
        experiment: the whole file.
    """
    if find_spec("urllib3") is None:
        text = "needs the extra 'kubernetes'"
        yield KeyProblem((*at, "platform"), text, "pip install 'bequeath[kubernetes]'")
    yield from check_environment(section, at)
    yield from check_way(section, at, experiment)
    named, wanted = len(section.weights_read_roots), len(experiment.weights_read_roots)
    if named and named != wanted:
        yield KeyProblem(
            (*at, "weightsReadRoots"),
            f"names {named} folders, and 'weightsReadRoots' of the experiment has {wanted}",
            "name the place of each of them in the pods, in the same order",
        )
    if section.bring_code and section.code_folder is not None:
        text = "is given beside 'codeFolder', where pods have the code already"
        yield KeyProblem((*at, "bringCode"), text, "leave one of them out")
    yield from _check_meeting(section, at, experiment)
    if section.kubeconfig is not None and not os.path.isfile(section.kubeconfig):
        yield KeyProblem((*at, "kubeconfig"), f"does not exist: {section.kubeconfig}")
        return
    try:
        find_access(section.kubeconfig, section.context or "")
    except PermanentBackendError as error:
        where = f"{error.where}: " if error.where else ""
        key = "context" if section.context else "kubeconfig"
        yield KeyProblem((*at, key), f"leads to no cluster: {where}{error.message}", error.hint)


def _check_meeting(
    section: KubernetesService, at: JsonPath, experiment: AllKeys
) -> Iterator[KeyProblem]:
    """Yield that the pods of one trial have no folder in common, in which they would meet."""
    if experiment.trial_nodes == 1 or section.shares(section.work_folder):
        return
    shared = [each.at for each in section.volumes if section.shares(each.at) and not each.read_only]
    hint = "add a volume that all pods may write to, and name a folder of it"
    yield KeyProblem(
        (*at, "workFolder"),
        f"is {section.work_folder}, which each pod has for itself, and the pods of a trial meet in "
        "it ('trialNodes')",
        f"write 'workFolder: {shared[0].rstrip('/')}/bequeath'" if shared else hint,
    )
