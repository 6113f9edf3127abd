"""Say as JSON what GPUs there are: {"gpus": [{"name", "memory"}], "trouble": ..., "pynvml": bool}.
A GPU that is split also has "parts": the memory of each of its MIG devices.

Asks the driver's own library, since a machine may have it without nvidia-ml-py. Python 3.9.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json


def gpus() -> list[dict[str, object]]:
    """Their names and memory. Raises ``OSError`` without a library, or with its complaint."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    library.nvmlErrorString.restype = ctypes.c_char_p

    def ask(name: str, *words: object) -> None:
        code = getattr(library, name)(*words)
        if code:
            raise OSError(library.nvmlErrorString(code).decode())

    ask("nvmlInitWithFlags", 0)
    count = ctypes.c_uint()
    ask("nvmlDeviceGetCount_v2", ctypes.byref(count))
    found = []
    for index in range(count.value):
        handle = ctypes.c_void_p()
        name = ctypes.create_string_buffer(96)
        memory = (ctypes.c_ulonglong * 3)()
        try:
            ask("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
            ask("nvmlDeviceGetName", handle, name, 96)
            ask("nvmlDeviceGetMemoryInfo", handle, memory)
        except OSError as error:
            found.append({"name": "", "memory": 0, "trouble": str(error)})
            continue
        gpu = {"name": name.value.decode(errors="replace"), "memory": memory[0]}
        if is_split(library, handle):
            gpu["parts"] = parts(library, handle)
        found.append(gpu)
    return found


def is_split(library: ctypes.CDLL, handle: ctypes.c_void_p) -> bool:
    """Whether a GPU lends MIG devices in place of itself."""
    now, later = ctypes.c_uint(), ctypes.c_uint()
    try:
        code = library.nvmlDeviceGetMigMode(handle, ctypes.byref(now), ctypes.byref(later))
    except AttributeError:  # an old driver
        return False
    return code == 0 and now.value == 1


def parts(library: ctypes.CDLL, handle: ctypes.c_void_p) -> list[int]:
    """Memory of each MIG device (bytes)."""
    places = ctypes.c_uint()
    found = []
    if library.nvmlDeviceGetMaxMigDeviceCount(handle, ctypes.byref(places)):
        return []
    for place in range(places.value):
        part = ctypes.c_void_p()
        memory = (ctypes.c_ulonglong * 3)()
        if library.nvmlDeviceGetMigDeviceHandleByIndex(handle, place, ctypes.byref(part)):
            continue  # a place where none is
        if library.nvmlDeviceGetMemoryInfo(part, memory) == 0:
            found.append(memory[0])
    return found


def main() -> None:
    """Look, and say it."""
    told = {"gpus": [], "trouble": "", "pynvml": importlib.util.find_spec("pynvml") is not None}
    try:
        told["gpus"] = gpus()
    except (OSError, AttributeError) as error:
        told["trouble"] = str(error)
    print(json.dumps(told))  # noqa: T201 - that is the answer


main()
