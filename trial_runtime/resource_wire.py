"""Parts of :mod:`trial_runtime.wire` about a host's devices, cores and memory.

Bounded in number and size like everything that a peer sends. Fields may only be added at the end.
"""

from __future__ import annotations

from typing import Annotated, Optional

import msgspec
from msgspec import Meta

from trial_runtime.trial_wire import Count, Name

#: One message names at most so many devices, attempts or names.
MOST_DEVICES = 256
MOST_SAMPLES = 512
MOST_CUSTOM = 64
MOST_CACHED = 4096

#: Cores, watts, percent: finite numbers from zero.
Amount = Annotated[float, Meta(ge=0, le=1e12)]


class DeviceMessage(msgspec.Struct, frozen=True, array_like=True):
    """One GPU, or one MIG device of the GPU ``parent``.

    ``trouble``: the reason why no new trial may use it; empty if one may.
    """

    id: Name
    index: Count = 0
    name: Name = ""
    memory_bytes: Count = 0
    parent: Name = ""
    trouble: Name = ""


class OfferMessage(msgspec.Struct, frozen=True, array_like=True):
    """The resources of a host for trials beside slots.

    None: not counted there. ``cached``: digests of weights that lie on its disk.
    """

    devices: Annotated[tuple[DeviceMessage, ...], Meta(max_length=MOST_DEVICES)] = ()
    cpus: Optional[Amount] = None
    memory_bytes: Optional[Count] = None
    custom: Annotated[tuple[tuple[Name, Amount], ...], Meta(max_length=MOST_CUSTOM)] = ()
    cached: Annotated[tuple[Name, ...], Meta(max_length=MOST_CACHED)] = ()


class DeviceSample(msgspec.Struct, frozen=True, array_like=True):
    """The load of a device.

    None for a value that it does not report: a MIG device has no utilization of its own, and its
    power and temperature are its GPU's. ``old_s``: seconds since the driver's last answer.
    """

    id: Name
    index: Count = 0
    name: Name = ""
    memory_bytes: Count = 0
    used_bytes: Optional[Count] = None
    utilization: Optional[Amount] = None  # percent
    watts: Optional[Amount] = None
    celsius: Optional[Amount] = None
    trouble: Name = ""
    old_s: Amount = 0.0


class AttemptSample(msgspec.Struct, frozen=True, array_like=True):
    """The usage of all processes of an attempt together.

    ``cpu``: percent of one core. ``gpu_bytes``: of its devices' memory; None where the driver does
    not report it by process.
    """

    trial: Count
    attempt: Count
    cpu: Amount = 0.0
    rss_bytes: Count = 0
    devices: Annotated[tuple[Name, ...], Meta(max_length=MOST_DEVICES)] = ()
    gpu_bytes: Optional[Count] = None


class Samples(msgspec.Struct, frozen=True, array_like=True):
    """The newest samples of devices and attempts. Kept in the head's memory only."""

    devices: Annotated[tuple[DeviceSample, ...], Meta(max_length=MOST_DEVICES)] = ()
    attempts: Annotated[tuple[AttemptSample, ...], Meta(max_length=MOST_SAMPLES)] = ()
