"""What one look at the devices of a host found: plain values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Optional


class NoDevices(Exception):
    """Raised when nothing can be said of this host's devices; its text says why, in words."""


@dataclass(frozen=True)
class DeviceUse:
    """A process on a device. ``ours``: a descendant of this agent; None: its number is not one
    of this host's processes, as where the agent lives in a container and the driver does not."""

    pid: int
    nbytes: Optional[int] = None  # None: the driver does not tell
    ours: Optional[bool] = None


@dataclass(frozen=True)
class Seen:
    """One GPU, or one MIG device, whose ``parent`` is its GPU and ``index`` the parent's.

    Memory in bytes, ``utilization`` in percent, None for what this device does not tell.
    ``fault`` is what the driver said instead of all this; ``lost``: what runs there cannot go on.
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
        """As it was known, and what is wrong with it now."""
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
