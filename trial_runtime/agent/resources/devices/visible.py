"""The devices of a host that this agent may use.

``gpuIndices`` of the file limits them, and the ``CUDA_VISIBLE_DEVICES`` that the agent was started
with, by which Slurm and careful users allocate some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from trial_runtime.agent.resources.devices.seen import Seen

#: The variable that names their devices to CUDA programs.
VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible(devices: Sequence[Seen], setting: Optional[str]) -> list[Seen]:
    """The devices that a ``CUDA_VISIBLE_DEVICES`` lets through; all, if ``setting`` is None.

    Numbers count GPUs as NVML does, and a GPU brings its MIG devices; ids may be cut short, as
    CUDA allows. Like CUDA, nothing counts after the first word that names no device.
    """
    if setting is None:
        return list(devices)
    chosen: list[Seen] = []
    for word in (part.strip() for part in setting.split(",")):
        found = [each for each in devices if _names(word, each)]
        if not found:
            break
        chosen.extend(each for each in found if each not in chosen)
    return chosen


def _names(word: str, device: Seen) -> bool:
    if word.isdigit():
        return device.index == int(word)
    return bool(word) and (device.id.startswith(word) or device.parent == word)


def missing_indices(devices: Sequence[Seen], wanted: Sequence[int]) -> str:
    """A sentence that names indices of ``gpuIndices`` without a GPU; empty if there are none."""
    there = sorted({each.index for each in devices})
    absent = [index for index in wanted if index not in there]
    if not absent:
        return ""
    have = ", ".join(map(str, there)) if there else "none"
    return f"gpuIndices names {', '.join(map(str, absent))}, and the GPUs of this host are: {have}"
