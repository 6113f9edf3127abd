"""A machine over a connection: commands with input and output, and the code that it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from nfs_setup.cluster.members import Member
from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Ran


class Unreachable(MachineRefuses):
    """Raised when no login works there, or the connection was lost."""


class Remote(Protocol):
    """One machine, logged in. Used by one thread."""

    def run(self, argv: Sequence[str], *, stdin: bytes, limit_s: float) -> Ran:
        """Run a program. Its code is 127 if there is no such program, 124 if it took too long.

        Args:
            argv: the program and its arguments.
            stdin: all of its input.
            limit_s: seconds; this blocks no longer.

        Raises:
            Unreachable: if the connection is lost.
        """


#: Log in at a machine, and out again at the end of the context. Blocks.
Connect = Callable[[Member], AbstractContextManager[Remote]]

#: Not needed where a request is carried out.
STAYS = ("cluster",)


@dataclass(frozen=True)
class Program:
    """This package, but for :data:`STAYS`, packed for a Python of 3.9 that has nothing of it.

    Attributes:
        code: goes first into its input, before the request.
        arguments: make a Python run it, if it came whole.
    """

    code: bytes
    arguments: tuple[str, ...]

    def command(self, python: str) -> tuple[str, ...]:
        """Return the command that runs it."""
        return (python, *self.arguments)
