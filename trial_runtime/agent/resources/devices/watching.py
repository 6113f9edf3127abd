"""The watch on the devices of this host, with a look every few seconds."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Optional, Protocol

import msgspec

from trial_runtime import wire
from trial_runtime.agent.base.helper import Looking
from trial_runtime.agent.base.loop import Timers, Watch
from trial_runtime.agent.config import ResourcesConfig
from trial_runtime.agent.processes.table import descends_from
from trial_runtime.agent.resources.devices.judging import Judge
from trial_runtime.agent.resources.devices.nvml import Nvml
from trial_runtime.agent.resources.devices.seen import (
    VISIBLE,
    NoDevices,
    Seen,
    missing_indices,
    visible,
)

#: Between two looks, in seconds: a look costs the driver some milliseconds a device.
EVERY_S = 2.0
#: After a look of that length the driver counts as hanging: its devices take no new trial.
SLOW_S = 10.0
#: How long the report of a failed attempt waits for a look at its devices (seconds).
VERDICT_S = 5.0

#: The reason why GPUs matter, by the keys of experiment files: ours and that of NNI's v1.
_NEED = "trials need GPUs (trialGpuNumber or gpuNum is not 0)"

_log = logging.getLogger("bequeath.agent")


class Looks(Protocol):
    """The source of devices: :class:`.nvml.Nvml`, or a fake of a test."""

    def look(self) -> tuple[Seen, ...]: ...


class DeviceWatch:
    """Watches and judges the devices. Owned by the agent's loop.

    Args:
        resources: the settings of the experiment about GPUs.
        watch: of the agent's loop.
        timers: of the agent's loop.
        held: returns the devices that attempts hold, by id; true for those held wholly.
        changed: called in the loop when the offer has changed, and once when it is first known.
        nvml: lists the devices.
        visible_devices: the agent's ``CUDA_VISIBLE_DEVICES``; None: not set.
        every_s: seconds between two looks.
        slow_s: seconds after which a look means that the driver hangs.
    """

    def __init__(
        self,
        resources: ResourcesConfig,
        watch: Watch,
        timers: Timers,
        held: Callable[[], Mapping[str, bool]],
        changed: Callable[[], None],
        *,
        nvml: Optional[Looks] = None,
        visible_devices: Optional[str] = None,
        every_s: float = EVERY_S,
        slow_s: float = SLOW_S,
    ) -> None:
        self._resources = resources
        self._timers = timers
        self._held = held
        self._changed = changed
        self._visible = visible_devices
        self._every_s = every_s
        self._slow_s = slow_s
        me = os.getpid()
        looks = nvml or Nvml(lambda pid: descends_from(pid, me))
        self._looking = Looking(watch, "agent-devices", looks.look, self._took)
        self._judge = Judge(
            resources.gpu_indices,
            use_active=resources.use_active_gpu,
            min_free_bytes=resources.min_gpu_memory,
        )
        self.seen: tuple[Seen, ...] = ()
        self.seen_at = time.monotonic()
        self.offered: tuple[wire.DeviceMessage, ...] = ()
        self.trouble: Optional[str] = None if resources.count_gpus else ""  # None: not known yet
        self.hopeless = False  # nobody mends it but by changing the experiment or the host
        self._again = False
        self._waiting: list[Callable[[], None]] = []

    def start(self) -> None:
        """Look now and every few seconds; does nothing where no GPUs are counted."""
        if self._resources.count_gpus:
            self._tick()

    def look_now(self) -> None:
        """Look at once, since something has changed here: an attempt is over."""
        if self._resources.count_gpus and not self._looking.begin():
            self._again = True

    def after_a_look(self, call: Callable[[], None]) -> None:
        """Call when a look that begins now is over, or takes too long."""
        if not self._resources.count_gpus:
            call()
            return

        def once() -> None:
            if once in self._waiting:
                self._waiting.remove(once)
                call()

        self._waiting.append(once)
        self._timers.at(time.monotonic() + VERDICT_S, once)
        self.look_now()

    def is_lost(self, device: str) -> bool:
        """Whether a device is out of reach, by the newest look."""
        for each in self.seen:
            if each.id == device:
                return each.lost
        return bool(self.seen)

    @property
    def old_s(self) -> float:
        """The age of the newest look, where the driver hangs (seconds); else 0."""
        late = self._looking.under_way_s > self._slow_s
        return time.monotonic() - self.seen_at if late else 0.0

    # -- inside --------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._timers.at(time.monotonic() + self._every_s, self._tick)
        self._looking.begin()
        if self._looking.under_way_s > self._slow_s:
            self._hangs()

    def _took(self, seen: Optional[tuple[Seen, ...]], error: Optional[Exception]) -> None:
        self.seen_at = time.monotonic()
        if error is not None:
            self._cannot_tell(error)
        else:
            self.seen = tuple(visible(seen or (), self._visible))
            self._offer(tuple(self._judge.judge(self.seen, self._held())), self._amiss())
        if self._again:
            self._again = False
            self._looking.begin()
            return  # the waiting calls are for the look that begins now
        for call in list(self._waiting):
            call()

    def _amiss(self) -> str:
        """The reason why this host cannot take part in the experiment at all; else empty."""
        amiss = missing_indices(self.seen, self._resources.gpu_indices or ())
        if amiss or self.seen or not self._resources.must_have_gpus:
            return amiss
        if self._visible is not None:
            return f"{_NEED}, and {VISIBLE}={self._visible} lets none through here"
        return f"{_NEED}, and this host has none"

    def _cannot_tell(self, error: Exception) -> None:
        text = str(error) if isinstance(error, NoDevices) else f"looking at GPUs failed: {error!r}"
        if self.trouble is None:  # nothing was ever seen
            if self._resources.must_have_gpus:
                self._offer((), f"{_NEED}: {text}")
            elif self._resources.gpu_indices:
                self._offer((), f"gpuIndices is given: {text}")
            else:
                _log.warning("offering no GPUs: %s", text)
                self._offer((), "")
        else:
            self._offer(tuple(_with_trouble(each, text) for each in self.offered), self.trouble)

    def _hangs(self) -> None:
        text = "the GPU driver does not answer"
        devices = tuple(_with_trouble(each, text) for each in self.offered)
        self._offer(devices, self.trouble or (text if self.trouble is None else ""), False)

    def _offer(
        self, devices: tuple[wire.DeviceMessage, ...], amiss: str, hopeless: bool = True
    ) -> None:
        if amiss != self.trouble or devices != self.offered:
            for each in devices:
                if each.trouble and each not in self.offered:
                    _log.warning("GPU %d (%s) %s", each.index, each.id, each.trouble)
            # Once it has joined, a host does not leave again for want of a device.
            joined = self.trouble == ""
            self.offered, self.trouble = devices, ("" if joined else amiss)
            self.hopeless = hopeless and bool(self.trouble)
            self._changed()


def _with_trouble(device: wire.DeviceMessage, text: str) -> wire.DeviceMessage:
    return msgspec.structs.replace(device, trouble=text[:200])
