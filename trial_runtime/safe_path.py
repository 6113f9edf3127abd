"""Arguments for a Python that keep its current folder from shadowing our modules.

Python 3.11 has ``-P`` for that; these functions do the same with older ones.
"""

from __future__ import annotations

import sys

_NOT_HERE = "import sys; sys.path[:] = [p for p in sys.path if p]"


def code_arguments(code: str, version: tuple[int, ...] = sys.version_info[:2]) -> list[str]:
    """The arguments with which a Python of that version runs ``code``."""
    if version >= (3, 11):
        return ["-P", "-c", code]
    return ["-c", f"{_NOT_HERE}\n{code}"]


def module_arguments(module: str, version: tuple[int, ...] = sys.version_info[:2]) -> list[str]:
    """The arguments with which a Python of that version runs a module.

    Those for the oldest version serve any.
    """
    if version >= (3, 11):
        return ["-P", "-m", module]
    # As the only __main__ there is: the types of its classes are looked up by that name.
    run = f"runpy.run_module({module!r}, None, '__main__', True)"
    return ["-c", f"{_NOT_HERE}; import runpy; {run}"]
