"""The judgement which devices new trials may use, and why not the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

from trial_runtime import wire
from trial_runtime.agent.resources.devices.seen import Seen

_GIB = 1 << 30


class Judge:
    """Judges the devices of each look; remembers the strangers' processes of the one before.

    A stranger's process must be there at two looks in a row: a program that lists devices, or a
    process of ours that is just dying, does not count. At the first look of all, one is enough.

    Args:
        indices: the GPUs that count; all, if None.
        use_active: ignore strangers' processes (``useActiveGpu``).
        min_free_bytes: a device with less free memory takes no new trial (``minGpuMemory``).
    """

    def __init__(
        self, indices: Optional[Sequence[int]], *, use_active: bool, min_free_bytes: int
    ) -> None:
        self._indices = None if indices is None else frozenset(indices)
        self._use_active = use_active
        self._min_free_bytes = min_free_bytes
        self._strangers: Optional[dict[str, set[int]]] = None

    def judge(self, devices: Sequence[Seen], held: Mapping[str, bool]) -> list[wire.DeviceMessage]:
        """The devices to offer to the head, each with its trouble.

        Args:
            devices: those of one look.
            held: devices that attempts of ours hold, by id; true for those that are held
                wholly, so that nothing more fits whatever their memory.
        """
        counted = [each for each in devices if self._indices is None or each.index in self._indices]
        before, self._strangers = self._strangers, {}
        offered = []
        for device in counted:
            strangers = _strangers(device, ours_run=device.id in held)
            self._strangers[device.id] = strangers
            if before is not None:
                strangers = strangers & before.get(device.id, set())
            trouble = device.fault or self._trouble(device, strangers, held.get(device.id, False))
            offered.append(
                wire.DeviceMessage(
                    device.id,
                    device.index,
                    device.name[:100],
                    device.memory_bytes,
                    device.parent,
                    trouble[:200],
                )
            )
        return offered

    def _trouble(self, device: Seen, strangers: set[int], wholly_held: bool) -> str:
        """The reason why a device takes no new trial; empty if it does.

        The text has no numbers that change: each new text is an event in the journal.
        """
        if strangers and not self._use_active:
            return f"is used by somebody else's process {min(strangers)}"
        if wholly_held or device.free_bytes is None:
            return ""
        if device.free_bytes < self._min_free_bytes:
            wanted = self._min_free_bytes / _GIB
            return f"has less free memory than minGpuMemory ({wanted:.4g} GiB)"
        return ""


def _strangers(device: Seen, *, ours_run: bool) -> set[int]:
    """The processes on a device that are not ours.

    In a container whose process numbers are not the driver's that is unknown: such a process
    counts only while no attempt of ours holds the device.
    """
    return {
        use.pid for use in device.uses if use.ours is False or (use.ours is None and not ours_run)
    }
