"""Runs the conformance suite over one platform, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SUITE = ROOT / "tests/support/services/conformance.py"


def conforms(platform: str, folder: Path, *more: str) -> str:
    """Run the suite; returns what it has printed, and fails where a test does.

    Args:
        platform: ``module:NAME`` of a :class:`~tests.support.services.played.PlayedPlatform`.
        folder: for its files.
        more: options of pytest.
    """
    plugin = ["-p", "dispatcher.conformance.plugin", "-p", "no:cacheprovider"]
    options = ["-q", "-x", "-rs", *plugin, f"--rootdir={folder}", "-c", os.devnull, *more]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(SUITE), f"--basetemp={folder / 'tmp'}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PLAYED_PLATFORM": platform},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-20000:] + ran.stderr
    return ran.stdout
