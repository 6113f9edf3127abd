"""The result of one look at the devices of a host, as plain values."""

from __future__ import annotations

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
