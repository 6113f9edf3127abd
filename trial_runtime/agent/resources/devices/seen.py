"""The result of one look at the devices of a host, and which of them this agent may use.

``gpuIndices`` of the file limits them, and the ``CUDA_VISIBLE_DEVICES`` that the agent was started
with, by which Slurm and careful users allocate some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Optional


class NoDevices(Exception):
    """Raised when this host's devices cannot be listed; its text says why, in a sentence."""


@dataclass(frozen=True)
class DeviceUse:
    """A process on a device.

    ``ours``: whether it descends from this agent; None: its number is not one of this host's
    processes, as where the agent runs in a container and the driver does not.
    """

    pid: int
    nbytes: Optional[int] = None  # None: the driver does not report it
    ours: Optional[bool] = None


@dataclass(frozen=True)
class Seen:
    """One GPU, or one MIG device, whose ``parent`` is its GPU and ``index`` the parent's.

    Memory in bytes, ``utilization`` in percent, None for values this device does not report.
    ``fault`` is the driver's error instead of all this; ``lost``: its trials cannot go on.
    """

    id: str
    index: int
    name: str = ""
    memory_bytes: int = 0
    used_bytes: Optional[int] = None
    free_bytes: Optional[int] = None
    parent: str = ""
    uses: tuple[DeviceUse, ...] = field(default=())
    utilization: Optional[int] = None
    watts: Optional[float] = None
    celsius: Optional[int] = None
    fault: str = ""
    lost: bool = False

    def with_fault(self, text: str, *, lost: bool) -> Seen:
        """The device as it was known, with a fault."""
        return replace(
            self,
            used_bytes=None,
            free_bytes=None,
            uses=(),
            utilization=None,
            watts=None,
            celsius=None,
            fault=text,
            lost=lost,
        )


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
