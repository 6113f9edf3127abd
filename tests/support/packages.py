"""Packages of other people, laid down as ``pip install --target`` leaves them."""

from __future__ import annotations

from pathlib import Path


def lay_down(there: Path, name: str, entry_points: str) -> None:
    """Write a distribution's metadata; its modules are the test's own.

    Args:
        there: the folder that packages are imported from.
        name: of the distribution.
        entry_points: the text of ``entry_points.txt``.
    """
    info = there / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
