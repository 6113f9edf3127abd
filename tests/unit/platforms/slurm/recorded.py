"""Texts of real clusters, as three versions of Slurm have printed them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

TEXTS = Path(__file__).parent / "texts"
VERSIONS = sorted(path.name for path in TEXTS.iterdir())

#: Names in them begin so.
PREFIX = "lab-0a1b2c-slurm-"


def listed(version: str, name: str) -> bytes:
    """A list of ``squeue``: ``mixed`` soon after a number of orders, ``soon`` after a node has
    crashed, ``late`` when that was known."""
    return (TEXTS / version / f"{name}.txt").read_bytes()


class Exchange(NamedTuple):
    """A command, its output, and its exit status."""

    command: list[str]
    text: bytes
    code: int


def exchanges(version: str, name: str = "answers") -> list[Exchange]:
    """Commands that were refused, and what they said."""
    path = TEXTS / version / f"{name}.txt"
    matches = re.findall(r"^\$ (.*)\n((?:.*\n)*?)rc (\d+)$", path.read_text(), re.MULTILINE)
    return [Exchange(command.split(), text.encode(), int(code)) for command, text, code in matches]
