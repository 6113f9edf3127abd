"""The code that an agent of this machine is started with: what is installed here by now."""

from __future__ import annotations

import hashlib
from pathlib import Path

import trial_runtime


def installed_code() -> str:
    """A digest of the files of ``trial_runtime`` as they are on the disk; empty if one cannot be
    read, as while an installer replaces them. Takes some milliseconds."""
    root = Path(trial_runtime.__file__).parent
    digest = hashlib.sha256()
    try:
        for path in sorted(root.rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root)} {len(content)}\n".encode())
            digest.update(content)
    except OSError:
        return ""
    return digest.hexdigest()
