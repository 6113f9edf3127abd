"""Sections of NNI's for OpenPAI, as jobs of our platform ``openpai``.

NNI has the same share at two paths, one of its manager and one of jobs. Both go by it here as well:
code that is brought, logs, and messages.
"""

from __future__ import annotations

from typing import Any

from dispatcher.nni.files.clusters.making import IMAGE, Making, Part, Take, exactly, loosely
from dispatcher.nni.files.clusters.tables import V1_PAI, V1_PAI_TRIAL, V2_OPENPAI
from dispatcher.nni.files.sections import nas_mode
from tuners.plain_json import JsonPath

PLATFORM = "openpai"


def translate_v1(making: Making, trial: Part, config: Part) -> None:
    """Translate ``trial`` and ``paiConfig``.

    Args:
        making: the section in the making.
        trial: the section of the file.
        config: the section of the file.
    """
    job = _Job(making)
    making.walk(
        config,
        exactly(V1_PAI),
        {
            "token": lambda value, at: making.secret("token", value, at),
            "reuse": making.take_reuse,
            "gpunum": job.note("gpus"),
            "cpunum": job.note("cpus"),
            "memorymb": job.note("memory"),
        },
    )
    making.walk(
        trial,
        exactly(V1_PAI_TRIAL),
        {
            "gpunum": job.take_gpus,
            "cpunum": job.note("cpus"),
            "memorymb": job.note("memory"),
            "image": job.note("image"),
            "shmmb": job.take_shared_memory,
            "nnimanagernfsmountpath": job.note("here"),
            "containernfsmountpath": job.note("there"),
            "paistorageconfigname": job.note("storage"),
            "nasmode": lambda value, at: nas_mode(making.draft, value, at),
        },
    )
    job.finish()


def translate_v2(making: Making, section: Part) -> None:
    """Translate a section of ``trainingService``.

    Args:
        making: the section in the making.
        section: of the file.
    """
    job = _Job(making)
    making.walk(
        section,
        loosely(V2_OPENPAI),
        {
            **making.common(PLATFORM),
            "trialgpunumber": job.take_gpus,
            "token": lambda value, at: making.secret("token", value, at),
            "trialcpunumber": job.note("cpus"),
            "trialmemorysize": job.note("memory"),
            "storageconfigname": job.note("storage"),
            "dockerimage": job.note("image"),
            "localstoragemountpoint": job.note("here"),
            "containerstoragemountpoint": job.note("there"),
        },
    )
    job.finish()


class _Job:
    """The jobs that a section describes; of two values of the same the first one counts."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self._noted: dict[str, tuple[Any, JsonPath]] = {}

    def note(self, what: str) -> Take:
        """Return what notes a value, to be put when all of them are known."""

        def take(value: Any, at: JsonPath) -> None:
            if what in self._noted:
                self._making.draft.drop(at, "what the section of the cluster says counts")
            else:
                self._noted[what] = (value, at)

        return take

    def take_gpus(self, value: Any, at: JsonPath) -> None:
        """Take the GPUs of a trial, which a job's node has at least."""
        self._making.draft.put(("trialGpuNumber",), value, at)
        self._noted.setdefault("gpus", (value, at))

    def take_shared_memory(self, value: Any, at: JsonPath) -> None:
        """Take the size of ``/dev/shm`` (MiB)."""
        self._making.put("sharedMemory", f"{self._making.mebibytes(value, at)}mb", at)

    def finish(self) -> None:
        """Put all that is noted."""
        making, noted = self._making, self._noted
        gpus = noted.get("gpus") or making.top("trialGpuNumber")
        if gpus is not None:
            making.add("gpus", gpus[0], "of a job's node", gpus[1])
        if "cpus" in noted:
            making.put("cpus", *noted["cpus"], "of a job's node")
        if "memory" in noted:
            many = making.mebibytes(*noted["memory"])
            making.put("memory", f"{many}mb", noted["memory"][1], "of a job's node")
        if "image" in noted:
            making.put("image", *noted["image"])
        else:
            making.add("image", IMAGE, "NNI's own image")
        if "storage" in noted:
            storage, at = noted["storage"]
            making.draft.put(("trainingService", "storages", 0, "name"), storage, at)
        self._put_mounts()
        making.finish()

    def _put_mounts(self) -> None:
        making, noted = self._making, self._noted
        here, there = noted.get("here"), noted.get("there")
        if here is None or there is None:
            alone = here or there
            if alone is not None:
                text = "is one of two paths of a share, and the other one is missing"
                making.draft.refuse(alone[1], text)
            return
        folder, path = making.text(*here), making.text(*there)
        if folder and path:
            making.draft.put(("trainingService", "mounts", folder), path, there[1])
            making.add("sharedFolder", folder, "for code, logs and messages", here[1])
            if not making.has("codeFolder"):
                making.add("bringCode", True, "NNI copies the code, too")
