"""Versions of torch that keep a file which they read from running code."""

from __future__ import annotations

import re
from typing import Final

#: With ``weights_only=True`` a file still ran code up to 2.5 (CVE-2025-32434), and could damage
#: the memory of the process up to 2.9 (CVE-2026-24747).
SAFE_TORCH: Final = (2, 10)


def why_unsafe(version: str) -> str:
    """The reason why a torch of this version must not read files of others; empty if it may."""
    match = re.match(r"(\d+)\.(\d+)(?:\.\d+)?(a|b|rc|\.dev)?", version)
    if match is not None:
        release = (int(match[1]), int(match[2]))
        if release > SAFE_TORCH or (release == SAFE_TORCH and not match[3]):
            return ""
    return (
        f"torch {version} runs what a hostile file of torch.save says "
        "(CVE-2025-32434, CVE-2026-24747), also with weights_only=True"
    )
