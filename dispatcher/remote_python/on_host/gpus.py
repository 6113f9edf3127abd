"""The verb ``gpus``: {"gpus": [{"name", "memory"}], "trouble": ..., "pynvml": bool}.
A GPU that is split also has "parts": the memory of each of its MIG devices.

Asks the driver's own library: before anything is brought there a machine may have that without
nvidia-ml-py, which the agent counts by later.
"""

from __future__ import annotations

import ctypes
import importlib.util
from typing import Any

from .facts import DRIVER


def gpus() -> list[dict[str, object]]:
    """Names and memory of all. Raises ``OSError`` without a library, or with its complaint."""
    library = ctypes.CDLL(DRIVER)
    library.nvmlErrorString.restype = ctypes.c_char_p

    def ask(name: str, *arguments: object) -> None:
        code = getattr(library, name)(*arguments)
        if code:
            raise OSError(library.nvmlErrorString(code).decode())

    ask("nvmlInitWithFlags", 0)
    count = ctypes.c_uint()
    ask("nvmlDeviceGetCount_v2", ctypes.byref(count))
    listed = []
    for index in range(count.value):
        handle = ctypes.c_void_p()
        name = ctypes.create_string_buffer(96)
        memory = (ctypes.c_ulonglong * 3)()
        try:
            ask("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
            ask("nvmlDeviceGetName", handle, name, 96)
            ask("nvmlDeviceGetMemoryInfo", handle, memory)
        except OSError as error:
            listed.append({"name": "", "memory": 0, "trouble": str(error)})
            continue
        gpu = {"name": name.value.decode(errors="replace"), "memory": memory[0]}
        if is_split(library, handle):
            gpu["parts"] = parts(library, handle)
        listed.append(gpu)
    return listed


def is_split(library: ctypes.CDLL, handle: ctypes.c_void_p) -> bool:
    """Whether a GPU is split into MIG devices, which take its place."""
    now, later = ctypes.c_uint(), ctypes.c_uint()
    try:
        code = library.nvmlDeviceGetMigMode(handle, ctypes.byref(now), ctypes.byref(later))
    except AttributeError:  # an old driver
        return False
    return code == 0 and now.value == 1


def parts(library: ctypes.CDLL, handle: ctypes.c_void_p) -> list[int]:
    """Memory of each MIG device (bytes)."""
    places = ctypes.c_uint()
    sizes = []
    if library.nvmlDeviceGetMaxMigDeviceCount(handle, ctypes.byref(places)):
        return []
    for place in range(places.value):
        part = ctypes.c_void_p()
        memory = (ctypes.c_ulonglong * 3)()
        if library.nvmlDeviceGetMigDeviceHandleByIndex(handle, place, ctypes.byref(part)):
            continue  # a place where none is
        if library.nvmlDeviceGetMemoryInfo(part, memory) == 0:
            sizes.append(memory[0])
    return sizes


def answer(arguments: dict[str, Any]) -> dict[str, object]:
    """Look. It takes no arguments."""
    del arguments
    pynvml = importlib.util.find_spec("pynvml") is not None
    try:
        return {"gpus": gpus(), "trouble": "", "pynvml": pynvml}
    except (OSError, AttributeError) as error:
        return {"gpus": [], "trouble": str(error), "pynvml": pynvml}
