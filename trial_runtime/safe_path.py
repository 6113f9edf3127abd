"""Calling a Python so that no folder it happens to stand in takes the place of our modules.

Python 3.11 has ``-P`` for that; what is here does the same with older ones.
"""

from __future__ import annotations

import sys

_NOT_HERE = "import sys; sys.path[:] = [p for p in sys.path if p]"


def code_arguments(code: str, version: tuple[int, ...] = sys.version_info[:2]) -> list[str]:
    """What follows the program of a Python of that version, which is to run ``code``."""
    if version >= (3, 11):
        return ["-P", "-c", code]
    return ["-c", f"{_NOT_HERE}\n{code}"]


def module_arguments(module: str, version: tuple[int, ...] = sys.version_info[:2]) -> list[str]:
    """What follows the program of a Python of that version, which is to run a module. Those for
    the oldest serve any."""
    if version >= (3, 11):
        return ["-P", "-m", module]
    # As the only __main__ there is: who looks the types of its classes up does so by that name.
    run = f"runpy.run_module({module!r}, None, '__main__', True)"
    return ["-c", f"{_NOT_HERE}; import runpy; {run}"]
