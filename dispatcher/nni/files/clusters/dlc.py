"""Sections of NNI's for Alibaba's PAI-DLC, as jobs of our platform ``dlc``; v1 has none."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from dispatcher.nni.files.clusters.making import BASE, Making, Part, Take, loosely
from dispatcher.nni.files.clusters.tables import V2_DLC
from tuners.plain_json import JsonPath

PLATFORM = "dlc"

_COUNT = re.compile(r"[0-9]{1,6}")

#: Keys of a quota's machine, which NNI takes as the text of a dict, and ours.
_OF_A_QUOTA = {
    "resource_id": "resourceId",
    "cpu": "cpus",
    "memory": "memory",
    "gpu": "gpus",
    "shared_memory": "sharedMemory",
}


def translate_v2(making: Making, section: Part) -> None:
    """Translate a section of ``trainingService``.

    Args:
        making: the section in the making.
        section: of the file.
    """
    job = _Job(making)
    making.walk(
        section,
        loosely(V2_DLC),
        {
            **making.common(PLATFORM),
            "trialgpunumber": making.take_gpus,
            "podcount": job.take_pods,
            "ecsspec": job.take_machine,
            "accesskeyid": lambda value, at: making.secret("accessKeyId", value, at),
            "accesskeysecret": lambda value, at: making.secret("accessKeySecret", value, at),
            "nasdatasourceid": job.note("nas"),
            "ossdatasourceid": job.note("oss"),
            "localstoragemountpoint": job.note("here"),
            "containerstoragemountpoint": job.note("there"),
        },
    )
    job.finish()


class _Job:
    """The machines of a job, and its storages."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self._noted: dict[str, tuple[Any, JsonPath]] = {}

    def note(self, what: str) -> Take:
        """Return what notes a value, to be put when all of them are known."""

        def take(value: Any, at: JsonPath) -> None:
            self._noted[what] = (value, at)

        return take

    def take_pods(self, value: Any, at: JsonPath) -> None:
        """Take ``podCount``."""
        if value == 1:
            self._making.draft.drop(at, "a trial has one node")
        else:
            self._making.draft.put(("trialNodes",), value, at, "pods of a trial")

    def take_machine(self, value: Any, at: JsonPath) -> None:
        """Take ``ecsSpec``: a type of machine, or what a machine of a quota has."""
        asked = value
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                asked = ast.literal_eval(value.strip())
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                self._making.draft.refuse(at, "is no text of a dict", is_key=False)
                return
        if not isinstance(asked, Mapping):
            self._making.put("ecsSpec", value, at)
            return
        for key, each in asked.items():
            native = _OF_A_QUOTA.get(str(key))
            if native is None:
                known = ", ".join(_OF_A_QUOTA)
                text = f"has {str(key)!r}, which is asked of no machine"
                self._making.draft.refuse(at, text, f"there are {known}", is_key=False)
            elif native in ("cpus", "gpus") and _COUNT.fullmatch(str(each)):
                self._making.put(native, int(each), at, "of a machine of the quota")
            else:
                self._making.put(native, each, at, "of a machine of the quota")

    def finish(self) -> None:
        """Put the storages, and what NNI does by itself."""
        making, noted = self._making, self._noted
        base = (*BASE, "dataSources")
        nas, here, there = (noted.get(each) for each in ("nas", "here", "there"))
        if nas is not None:
            making.draft.put((*base, 0, "id"), nas[0], nas[1])
            if there is not None:
                making.draft.put((*base, 0, "at"), there[0], there[1])
            if here is not None:
                making.draft.put((*base, 0, "here"), here[0], here[1])
                making.add("sharedFolder", here[0], "for code, logs and messages", here[1])
        else:
            for each in filter(None, (here, there)):
                making.no_effect("there is no 'nasDataSourceId' of which it would be")(*each)
        if "oss" in noted:
            oss, at = noted["oss"]
            index = 0 if nas is None else 1
            making.draft.put((*base, index, "id"), oss, at)
            making.draft.put((*base, index, "bucket"), True, at, "one of OSS")
        making.finish_job()
