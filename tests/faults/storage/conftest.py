"""Disks that are small enough to fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ENABLE = "run the tests as root, outside of a container that forbids mounts, to enable it"


class SmallDisk:
    """A file system of a few megabytes; ``folder`` is where it is mounted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Take all that is left, to the last byte."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while file.write(b"\0" * size):
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        """Give it back."""
        self._ballast.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """8 MB, really full when it is full."""
    if os.geteuid() != 0:
        pytest.skip(f"mounting a small tmpfs needs root: {ENABLE}")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs here ({mounted.stderr.strip()}): {ENABLE}")
    yield SmallDisk(folder)
    # Lazily: a process that is just ending may still stand in it.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
