"""Sections of NNI's for AdaptDL, as jobs of our platform ``adaptdl``; files of v1 have them."""

from __future__ import annotations

from typing import Any

from dispatcher.nni.files.clusters.making import BASE, IMAGE, Making, Part, Take, exactly
from dispatcher.nni.files.clusters.pods import finish_pods, put_nfs
from dispatcher.nni.files.clusters.tables import V1_ADL_TRIAL
from dispatcher.nni.files.sections import nas_mode
from tuners.plain_json import JsonPath

PLATFORM = "adaptdl"


def translate_v1(making: Making, trial: Part, config: Part) -> None:
    """Translate ``trial``, which has all there is.

    Args:
        making: the section in the making.
        trial: the section of the file.
        config: nothing.
    """
    job = _Job(making)
    making.walk(
        trial,
        exactly(V1_ADL_TRIAL),
        {
            "codedir": job.take_code,
            "gpunum": job.take_gpus,
            "cpunum": job.take_request("cpu"),
            "memorysize": job.take_request("memory"),
            "image": lambda value, at: making.put("image", value, at),
            "imagepullsecrets": job.take_secrets,
            "adaptive": lambda value, at: making.put("preemptible", value, at),
            "namespace": lambda value, at: making.put("namespace", value, at),
            "nfs": job.take_nfs,
            "nasmode": lambda value, at: nas_mode(making.draft, value, at),
        },
    )
    making.add("image", IMAGE, "NNI's own image")
    making.add("preemptible", False, "NNI's jobs are not adaptive unless the file says so")
    finish_pods(making)


class _Job:
    """The pods that a section describes."""

    def __init__(self, making: Making) -> None:
        self._making = making

    def take_code(self, value: Any, at: JsonPath) -> None:
        """Take ``codeDir``: a path of the image, or one that may be of this machine as well."""
        if isinstance(value, str) and value.startswith("/"):
            self._making.put("codeFolder", value, at, "the image has the code there")
        else:
            text = "a path without a beginning is one of this machine, too: the code is brought"
            self._making.draft.put(("trialCodeDirectory",), value, at, text)

    def take_gpus(self, value: Any, at: JsonPath) -> None:
        """Take ``gpuNum``."""
        if value not in (0, "0"):
            self._making.draft.put((*BASE, "limits", "nvidia.com/gpu"), value, at)
        else:
            self._making.draft.drop(at, "pods without GPUs have none")

    def take_request(self, resource: str) -> Take:
        """Return what takes an amount of a resource."""
        return lambda value, at: self._making.draft.put((*BASE, "requests", resource), value, at)

    def take_secrets(self, value: Any, at: JsonPath) -> None:
        """Take ``imagePullSecrets``, whose entries are sections with a name."""
        if not isinstance(value, list):
            self._making.draft.refuse(at, "must be a list, as [{name: NAME}]", is_key=False)
            return
        for index, each in enumerate(value):
            found = self._making.inner(each, (*at, index), {"name": "name"})
            if "name" in found:
                self._making.draft.put((*BASE, "imagePullSecrets", index), *found["name"])

    def take_nfs(self, value: Any, at: JsonPath) -> None:
        """Take ``nfs``."""
        keys = ("server", "path", "containerMountPath")
        found = self._making.inner(value, at, {key: key for key in keys})
        server, path, mount = (found.get(key, (None, at))[0] for key in keys)
        if not isinstance(mount, str) or not mount.startswith("/"):
            text = "must have a 'containerMountPath' from the root of the pods"
            self._making.draft.refuse(at, text, is_key=False)
        else:
            put_nfs(self._making, server, path, at, mount)
