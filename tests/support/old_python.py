"""A Python of the oldest version that machines may have, wherever this machine keeps it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

#: Names one, where none is found.
VARIABLE = "PYTHON39"

WHY_NOT = f"no python3.9 here ({VARIABLE} names one)"


@functools.cache
def old_python() -> str | None:
    """A real ``python3.9`` with its own prefix, no wrapper; None without one."""
    candidates = [os.environ.get(VARIABLE), shutil.which("python3.9"), *_of_pyenv()]
    for candidate in candidates:
        found = _real(candidate) if candidate else None
        if found:
            return found
    return None


def _of_pyenv() -> list[str]:
    """Its shims answer only where a version is chosen."""
    pyenv = shutil.which("pyenv")
    root = os.environ.get("PYENV_ROOT") or (str(Path(pyenv).resolve().parents[1]) if pyenv else "")
    return [str(p) for p in Path(root).glob("versions/3.9.*/bin/python3.9")] if root else []


def _real(candidate: str) -> str | None:
    asked = "import sys; print(sys.version_info[:2] == (3, 9), sys.executable)"
    try:
        ran = subprocess.run([candidate, "-c", asked], capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    said = ran.stdout.split()
    return said[1] if ran.returncode == 0 and said[:1] == ["True"] else None
