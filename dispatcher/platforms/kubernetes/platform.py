"""The platform ``kubernetes``: an agent in each of several Jobs of a cluster; and what it has in
common with its dialects, whose allocations are other objects of the same API."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.platforms.clusters.platform import ClusterPlatform
from dispatcher.platforms.kubernetes.section import K, KubernetesSection
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.findings import Finding
    from dispatcher.platforms.allocations.allocation import Allocator
    from dispatcher.platforms.allocations.probe import ProbeNeeds
    from dispatcher.platforms.given import Given, ServiceGiven
    from dispatcher.platforms.worker_files import AttemptShell


#: What trials that save weights, or restore them, get where pods and this machine share none.
NO_WEIGHTS = (
    "pods see no weights root: name a 'weightsRoot' that they reach as well, a folder on one of "
    "their 'volumes' or the URL of a store"
)


class PodPlatform(ClusterPlatform[K]):
    """A platform of clusters whose agents run in pods, which reach the head by TCP. Its section
    says of which kind of object these are."""

    protocol = 2
    has_nodes: ClassVar[bool] = True

    def check(self, section: K, at: JsonPath, experiment: AllKeys) -> Iterable[KeyProblem]:
        """See :meth:`Platform.check`: the kubeconfig, references, and a way to the head."""
        from dispatcher.platforms.kubernetes.checks import check_section

        return check_section(section, at, experiment)

    def no_weights(self, section: K, experiment: AllKeys) -> str:
        """See :meth:`FilePlatform.no_weights`: the usual root is a folder of this machine."""
        named = experiment.weights_root is not None or section.weights_root is not None
        if named or self.storage_domain(section, section):
            return ""
        here = str(experiment.experiment_working_directory)
        return "" if section.shares(here) else NO_WEIGHTS

    def inspect(self, section: K) -> Iterable[Finding]:
        """See :meth:`Platform.inspect`: version, rights, claims, and whether it takes an
        object of this kind."""
        from dispatcher.platforms.kubernetes.inspection import inspect_cluster

        return inspect_cluster(section)

    def probe_needs(self, given: Given[K]) -> ProbeNeeds | None:
        """See :meth:`AllocationPlatform.probe_needs`: what its image lacks is brought, but for what
        is no matter for ConfigMaps."""
        from dispatcher.platforms.clusters.platform import probe_needs_of
        from dispatcher.platforms.kubernetes.bringing import TOO_LARGE

        needs = probe_needs_of(given, brings_modules=given.section.bring_code)
        if needs is None or not given.section.bring_code:
            return needs
        return replace(needs, too_large=TOO_LARGE)

    def shell(self, given: Given[K], trial: int, attempt: int, *, pid: int = 0) -> AttemptShell:
        """See :meth:`Platform.shell`: in the worker's pod, by kubectl."""
        from dispatcher.platforms.files import with_our_terminal
        from dispatcher.platforms.kubernetes.api.kubeconfig import find_access
        from dispatcher.platforms.kubernetes.api.server import ApiServer
        from dispatcher.platforms.kubernetes.shell import ShellInPod, whereabouts_there

        access = find_access(given.section.kubeconfig, given.section.context or "")
        server = ApiServer(access, given.section.namespace or "")
        order = whereabouts_there(given, trial, attempt, pid)
        return ShellInPod(given, order, server, with_our_terminal)

    def allocator(self, service: ServiceGiven[K]) -> Allocator:
        """See :meth:`AllocationPlatform.allocator`: a client of the API server."""
        from dispatcher.platforms.kubernetes.allocator import KubernetesAllocator
        from dispatcher.platforms.kubernetes.api.kubeconfig import find_access
        from dispatcher.platforms.kubernetes.api.server import ApiServer

        section = service.section
        access = find_access(section.kubeconfig, section.context or "")
        return KubernetesAllocator(
            ApiServer(access, section.namespace or ""),
            section,
            service.label,
            token=service.token,
            archives=service.archives,
            probed=service.probed,
        )


class KubernetesPlatform(PodPlatform[KubernetesSection]):
    """The platform whose allocations are Jobs."""

    section = KubernetesSection
