"""Asking the driver through NVML (``nvidia-ml-py``): slow at times, and it may hang.

So nothing here is called by the agent's loop. The module is loaded when it is needed: most
agents never count GPUs, and many hosts have none.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Optional, TypeVar

from trial_runtime.agent.resources.devices.seen import DeviceUse, NoDevices, Seen

T = TypeVar("T")

#: What a driver brings.
_LIBRARY = "libnvidia-ml.so.1"
#: More are not listed (a host has 16 GPUs, each of at most 7 MIG devices).
MOST_DEVICES = 256
#: Processes of one device that are looked at.
MOST_PROCESSES = 256


class Nvml:
    """The driver of this host. One thread at a time.

    Args:
        ours: called with a pid: whether it is one of this agent's; None: no such process.
    """

    def __init__(self, ours: Callable[[int], Optional[bool]]) -> None:
        self._ours = ours
        self._module: Optional[ModuleType] = None  # once it is initialised
        self._known: dict[str, Seen] = {}  # all that were there once, as they were last well
        self._at: dict[int, list[str]] = {}  # by index: the GPU's id, or those of its MIG devices

    def look(self) -> tuple[Seen, ...]:
        """All devices. Blocks as long as the driver does.

        Raises:
            NoDevices: there is no driver, or it cannot be asked.
        """
        n = self._module or self._open()
        try:
            count = n.nvmlDeviceGetCount()
        except n.NVMLError as error:
            self._close()
            raise NoDevices(f"the GPU driver cannot be asked: {error}") from error
        found: list[Seen] = []
        for index in range(count):
            try:
                here = self._devices_at(n, index)
            except n.NVMLError as error:
                fault, lost = _fault(n, error)
                found.extend(each.with_fault(fault, lost=lost) for each in self._known_at(index))
                continue
            self._at[index] = [each.id for each in here]
            self._known.update((each.id, each) for each in here)
            found.extend(here)
        found.extend(self._gone({each.id for each in found}, count))
        return tuple(found[:MOST_DEVICES])

    def _gone(self, there: set[str], count: int) -> list[Seen]:
        """The devices that were there once, and are missing now.

        One whose number another device has now is forgotten: it was split, or all were numbered
        anew.
        """
        missing = [each for each in self._known.values() if each.id not in there]
        for each in missing:
            if each.index < count:
                del self._known[each.id]
        gone = [each for each in missing if each.index >= count]
        if gone:
            self._close()  # only a driver opened anew shows devices that have come back
        return [each.with_fault("is not there any more", lost=True) for each in gone]

    def _open(self) -> ModuleType:
        try:
            import pynvml as n
        except ImportError as error:
            _find_driver()
            raise NoDevices(
                f"nvidia-ml-py is not installed for {sys.executable}: "
                "GPUs can neither be counted nor watched (pip install 'bequeath[gpu]')"
            ) from error
        try:
            n.nvmlInit()
        except n.NVMLError as error:
            raise NoDevices(f"no GPU driver: {error}") from error
        self._module = n
        return n  # type: ignore[no-any-return]

    def _close(self) -> None:
        n, self._module = self._module, None
        if n is not None:
            try:
                n.nvmlShutdown()
            except n.NVMLError:
                pass  # it is in no state to be asked anything

    def _known_at(self, index: int) -> list[Seen]:
        """The devices last seen at this index, or one without a name if none ever was."""
        known = [self._known[each] for each in self._at.get(index, ()) if each in self._known]
        return known or [Seen(f"GPU-at-{index}", index)]

    def _devices_at(self, n: ModuleType, index: int) -> list[Seen]:
        handle = n.nvmlDeviceGetHandleByIndex(index)
        gpu = self._device(n, handle, index)
        if not _is_split(n, handle):
            return [gpu]
        found = []
        for each in range(n.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                part = n.nvmlDeviceGetMigDeviceHandleByIndex(handle, each)
            except n.NVMLError_NotFound:
                continue  # a place where no part is
            mig = self._device(n, part, index, gpu)
            found.append(mig)
        return found

    def _device(
        self, n: ModuleType, handle: Any, index: int, parent: Optional[Seen] = None
    ) -> Seen:
        """A GPU, or a part of it, whose power and temperature are those of the GPU."""
        memory = n.nvmlDeviceGetMemoryInfo(handle)
        rates = _if_supported(n, lambda: n.nvmlDeviceGetUtilizationRates(handle))
        if parent is None:
            milliwatts = _if_supported(n, lambda: n.nvmlDeviceGetPowerUsage(handle))
            watts = None if milliwatts is None else milliwatts / 1000
            celsius = _if_supported(
                n, lambda: n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU)
            )
        else:
            watts, celsius = parent.watts, parent.celsius
        return Seen(
            id=_text(n.nvmlDeviceGetUUID(handle)),
            index=index,
            name=_text(n.nvmlDeviceGetName(handle)),
            memory_bytes=int(memory.total),
            used_bytes=int(memory.used),
            free_bytes=int(memory.free),
            parent=parent.id if parent is not None else "",
            uses=self._uses(n, handle),
            utilization=None if rates is None else int(rates.gpu),
            watts=watts,
            celsius=celsius,
        )

    def _uses(self, n: ModuleType, handle: Any) -> tuple[DeviceUse, ...]:
        """The processes that compute on a device; those of a desktop's graphics do not count."""
        running = _if_supported(n, lambda: n.nvmlDeviceGetComputeRunningProcesses(handle)) or []
        return tuple(
            DeviceUse(int(each.pid), each.usedGpuMemory, self._ours(int(each.pid)))
            for each in running[:MOST_PROCESSES]
        )


def _find_driver() -> None:
    """Raise ``NoDevices`` where there is no driver: then not the module is missing."""
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise NoDevices(f"no GPU driver: {error}") from error


def _is_split(n: ModuleType, handle: Any) -> bool:
    mode = _if_supported(n, lambda: n.nvmlDeviceGetMigMode(handle))
    return mode is not None and mode[0] == n.NVML_DEVICE_MIG_ENABLE


def _if_supported(n: ModuleType, ask: Callable[[], T]) -> Optional[T]:
    """The answer to a question that not every device supports; None from one that does not."""
    try:
        return ask()
    except (n.NVMLError_NotSupported, n.NVMLError_FunctionNotFound, n.NVMLError_NoPermission):
        return None


def _fault(n: ModuleType, error: Exception) -> tuple[str, bool]:
    """The fault of a device as a text, and whether the trials on it are lost."""
    code = getattr(error, "value", None)
    if code == n.NVML_ERROR_GPU_IS_LOST:
        return "is lost: it has fallen off the bus, or is otherwise out of reach", True
    if code == n.NVML_ERROR_RESET_REQUIRED:
        return "has to be reset", True
    return f"cannot be asked: {error}", False


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
