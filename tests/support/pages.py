"""The code of a page, run as a reader runs it: files are written, commands are typed.

A block of Python or YAML that begins with ``# name.py`` is a file of that name. A block of ``sh``
is commands, typed one after the other in the folder of these files.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

#: All pages for users. Records of decisions show code that was, and is no more.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if "decisions" not in page.parts),
    *sorted((ROOT / "examples").rglob("*.md")),
]

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
_FILE = re.compile(r"# ([\w/.-]+\.(?:py|ya?ml))\n")
_PROMPT = re.compile(r"^(?:\w+)?\$ +")


class Block(NamedTuple):
    """A block of code: its language, its text, the file that it is (or none), its place."""

    language: str
    text: str
    file: str
    place: str


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """All blocks of a page, or those of one language, in their order."""
    text = page.read_text()
    found = []
    for match in _BLOCK.finditer(text):
        code = textwrap.dedent(match[3])
        named = _FILE.match(code)
        place = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
        found.append(Block(match[2], code, named[1] if named else "", place))
    return [block for block in found if language in (None, block.language)]


def python_blocks(page: str) -> list[str]:
    """The Python of a page: who unpacks it fails when the page has a block more."""
    return [block.text for block in blocks(ROOT / page, "python")]


def block_with(page: str, words: str) -> Block:
    """The block of a page that has these words."""
    (found,) = (block for block in blocks(ROOT / page) if words in block.text)
    return found


def command_lines(block: Block) -> list[str]:
    """What somebody types: of a block with prompts, the lines that have one.

    Lines that end with a backslash are one with the next.
    """
    lines = block.text.replace("\\\n", " ").splitlines()
    prompted = [_PROMPT.sub("", line) for line in lines if _PROMPT.match(line)]
    return prompted or [line for line in lines if line.strip() and not line.startswith("#")]


def shown_files(block: Block) -> Iterator[tuple[str, str]]:
    """The names and texts of files that a block shows by ``$ cat NAME``."""
    for match in re.finditer(r"^\$ cat (\S+)\n(.*?)(?=^\$ |\Z)", block.text, re.M | re.S):
        yield match[1], match[2]


def words_for(program: str, line: str) -> Iterator[list[str]]:
    """What a program is given by a command line, once for each time that it is called there."""
    read = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    read.whitespace_split = True
    for punctuation, words in itertools.groupby(read, lambda word: set(word) <= set("|&;<>()")):
        called = list(itertools.dropwhile(_comes_before, words))
        if not punctuation and called and called[0] in (program, f".venv/bin/{program}"):
            yield called[1:]


def _comes_before(word: str) -> bool:
    """Whether a program may follow this word: one that starts others, or a variable."""
    return word in ("sudo", "srun") or "=" in word


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
        self.file(block.file, block.text)

    def file(self, name: str, text: str) -> None:
        """Write a file of this name."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def type(self, command: str, timeout_s: float = 240.0, **environment: str) -> str:
        """Run a command line that must succeed; what it printed."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**self._surroundings(), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def run(self, keys: Mapping[str, Any], lines: str = "") -> str:
        """Run an experiment to its end; what it printed.

        Args:
            keys: of its file; one trial, if they say nothing else.
            lines: of a page, which stand in it as they are.
        """
        one = {"trialConcurrency": 1, "maxTrialNumber": 1}
        rest = {key: each for key, each in one.items() if f"{key}:" not in lines}
        self.file("experiment.yml", lines + yaml.safe_dump(rest | dict(keys)))
        return self.type("bequeath run experiment.yml")

    def start(self, command: str) -> subprocess.Popen[bytes]:
        """Start a command line that goes on; what it prints is not kept."""
        return subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self._surroundings(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _surroundings(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "BEQUEATH_HOME": str(self.home),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "COLUMNS": "100",
            "OMP_NUM_THREADS": "1",  # of libraries: several trials share the cores
        }

    def follow(self, page: Path, fragments: int = 0) -> dict[str, str]:
        """Do all that a page says but for ``pip``; what each command printed.

        Args:
            page: its Python are files, since nothing else would be run.
            fragments: so many of its blocks are parts of a program, which another test runs.
        """
        printed: dict[str, str] = {}
        for block in blocks(page):
            if block.file:
                self.write(block)
            elif block.language == "python":
                fragments -= 1
            elif block.language == "sh":
                for command in block.text.splitlines():
                    if not command.startswith("pip "):
                        printed[command] = self.type(command)
        assert fragments == 0, f"{page.name}: begin each block of Python with '# NAME.py'"
        return printed
