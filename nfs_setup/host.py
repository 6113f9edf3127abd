"""The machine that is set up, as a Protocol: everything else here reaches it through this only.

So each rule runs against a pretended machine in tests, and the same steps can be printed
(``--dry-run``) without being carried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

#: Bytes of a configuration file that are read; real ones have a few thousand.
MOST_BYTES = 4 << 20

#: Seconds for a command that only looks or flips a switch.
SOON_S = 30.0


@dataclass(frozen=True)
class Ran:
    """End and output of a command. ``code`` 124: it took too long; 127: no such program."""

    code: int
    out: str
    err: str

    @property
    def ok(self) -> bool:
        """Whether it ended with 0."""
        return self.code == 0

    @property
    def message(self) -> str:
        """The last line of its output that is not empty, errors first: for the text of an error."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1].strip() if lines else f"it ended with {self.code} and printed nothing"


@dataclass(frozen=True)
class Stat:
    """The kind of a path: ``file``, ``folder``, ``link`` or ``other``. Links are not followed."""

    kind: str
    mode: int
    uid: int
    gid: int


class Files(Protocol):
    """The file system. Paths are absolute; ``OSError`` where the system says no."""

    def stat(self, path: str) -> Stat | None:
        """Return kind, mode and owner of a path; None if nothing is there."""

    def read(self, path: str) -> bytes | None:
        """Return all of a file, :data:`MOST_BYTES` at most; None if there is none."""

    def write(self, path: str, content: bytes, mode: int, uid: int = 0, gid: int = 0) -> None:
        """Replace a file in one go, durably: other processes see the old or the new one.

        Args:
            path: absolute; its folder must be there.
            content: all of the file.
            mode: its permission bits.
            uid: its owner.
            gid: its group.
        """

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""

    def make_folder(self, path: str, mode: int) -> None:
        """Make one folder; its parent must be there."""

    def remove_folder(self, path: str) -> bool:
        """Remove an empty folder. False if something is in it."""

    def set_owner(self, path: str, mode: int, uid: int, gid: int) -> None:
        """Set owner, group and mode of a folder.

        Args:
            path: absolute, without a link on the way.
            mode: permission bits, set-gid and sticky.
            uid: the owner.
            gid: the group.

        Raises:
            MachineRefuses: where a link is in the way, or where others than root could put
                something else in its place.
        """

    def why_movable(self, path: str) -> str:
        """Return why others than root could put something else at a path, there or not yet;
        empty if they cannot."""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; empty if there is none."""

    def make_link(self, path: str, target: str) -> None:
        """Make a symbolic link where nothing is."""

    def link(self, path: str) -> str | None:
        """Return the target of a symbolic link; None if it is none."""


class Host(Files, Protocol):
    """A machine: its files, and commands on it."""

    def run(
        self, argv: Sequence[str], *, limit_s: float = SOON_S, stdin: bytes | None = None
    ) -> Ran:
        """Run a program, never through a shell. Its output is bounded. Never raises for how it
        ends.

        Args:
            argv: the program and its arguments.
            limit_s: seconds after which it is killed; this blocks no longer.
            stdin: all of its input; None for none.
        """

    def is_root(self) -> bool:
        """Whether it may change the system."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the lock of this machine, which only one process at a time changes.

        Raises:
            MachineRefuses: if another one does already.
        """
