"""A machine that is asked, over whatever carries a request there and an answer back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from nfs_setup.errors import MachineRefuses


class PeerLost(MachineRefuses):
    """Raised when no answer comes: the connection broke, or its program cannot run or died."""


class PeerHangs(PeerLost):
    """Raised when it takes too long: its share hangs, most likely."""


class Peer(Protocol):
    """One machine. Used by one thread at a time."""

    name: str

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """The answer of :func:`nfs_setup.verify.probes.answer` there. Blocks for ``limit_s`` at
        most.

        Raises:
            PeerLost: if there is no answer; it is not asked again.
            RequestRefused: if it is refused there.
        """

    def close(self) -> None:
        """Let it go. Whatever still hangs there is not waited for."""
