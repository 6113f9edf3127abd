"""What a machine has to offer to be set up from elsewhere: a command with input, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from nfs_setup.cluster.members import Member
from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Ran


class Unreachable(MachineRefuses):
    """Raised when nobody can log in there, or the connection was lost."""


class Remote(Protocol):
    """One machine, logged in. Used by one thread."""

    def run(self, argv: Sequence[str], *, stdin: bytes, limit_s: float) -> Ran:
        """Run a program, its input given whole. Blocks for ``limit_s`` at most; 127 if there is
        no such program, 124 if it took too long.

        Raises:
            Unreachable: if the connection is lost.
        """


#: Log in at a machine, and out again at the end of the context. Blocks.
Connect = Callable[[Member], AbstractContextManager[Remote]]
