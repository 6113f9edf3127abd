"""The code of a page, run as a reader runs it: files are written, commands are typed.

A block of Python or YAML that begins with ``# name.py`` is a file of that name. A block of ``sh``
is commands, typed one after the other in the folder of these files.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"# ([\w/.-]+\.(?:py|ya?ml))\n")


class Block(NamedTuple):
    """A block of code: its language, its text, and the file that it is (or none)."""

    language: str
    text: str
    file: str


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in their order."""
    found = []
    for language, text in _BLOCK.findall(page.read_text()):
        named = _FILE.match(text)
        found.append(Block(language, text, named[1] if named else ""))
    return found


class Reader:
    """A reader in a folder: writes the files of a page, and types its commands.

    Args:
        folder: where files are written and commands run; experiments lie below it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "experiments"

    def write(self, block: Block) -> None:
        """Write a file of the page."""
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)

    def type(self, command: str, timeout_s: float = 240.0) -> str:
        """Run a command line that must succeed; what it printed."""
        binaries = Path(sys.executable).parent
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{binaries}:{os.environ['PATH']}",
                "BEQUEATH_HOME": str(self.home),
                "COLUMNS": "100",
                "OMP_NUM_THREADS": "1",  # of libraries: several trials share the cores
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def follow(self, page: Path) -> dict[str, str]:
        """Do all that a page says but for ``pip``; what each command printed."""
        printed: dict[str, str] = {}
        for block in blocks(page):
            if block.file:
                self.write(block)
            elif block.language == "sh":
                for command in block.text.splitlines():
                    if not command.startswith("pip "):
                        printed[command] = self.type(command)
        return printed
