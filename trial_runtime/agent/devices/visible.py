"""Which of a host's devices this agent may count on: ``gpuIndices`` of the file, and the
``CUDA_VISIBLE_DEVICES`` it was started with, which is how Slurm and careful users lend some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from trial_runtime.agent.devices.seen import Seen

#: The variable by which CUDA programs are told their devices.
VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible(devices: Sequence[Seen], setting: Optional[str]) -> list[Seen]:
    """Those that a ``CUDA_VISIBLE_DEVICES`` lets through, all without one.

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
    """What is wrong with ``gpuIndices``, in a sentence; empty if all are there."""
    there = sorted({each.index for each in devices})
    absent = [index for index in wanted if index not in there]
    if not absent:
        return ""
    have = ", ".join(map(str, there)) if there else "none"
    return f"gpuIndices names {', '.join(map(str, absent))}, and the GPUs of this host are: {have}"
