"""State of each machine's part of a run, and its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nfs_setup.cluster.plan import Order
from nfs_setup.errors import SetupError
from nfs_setup.report import Report

WAITING, LOOKING, WORKING = "waiting", "looking", "working"
DONE, FAILED, LEFT_OUT, UNKNOWN = "done", "failed", "left out", "unknown"

_OVER = frozenset({DONE, FAILED, LEFT_OUT, UNKNOWN})


@dataclass
class Outcome:
    """One machine's part.

    Attributes:
        state: ``waiting``, ``looking`` (login, Python, root), ``waiting``, ``working``; then
            ``done``, ``failed``, ``left out`` (nothing was done there), or ``unknown``: it was
            under way when we stopped waiting.
        error: why it failed or was left out.
    """

    order: Order
    state: str = WAITING
    report: Report | None = None
    error: SetupError | None = None
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The machine."""
        return self.order.member.name

    @property
    def over(self) -> bool:
        """Whether nothing more will happen there."""
        return self.state in _OVER

    @property
    def word(self) -> str:
        """The state, and of what is done, what that meant."""
        if self.state != DONE or self.report is None or self.report.verb == "status":
            return self.state
        if not self.report.changed:
            return "nothing to undo" if self.report.verb == "undo" else "as it should be"
        if self.report.dry_run:
            return "planned"
        return "undone" if self.report.verb == "undo" else "set up"

    def plain(self) -> dict[str, Any]:
        """The outcome as JSON has it."""
        error = self.error
        return {
            "host": self.name,
            "role": self.order.member.role,
            "state": self.state,
            "seconds": round(self.seconds, 3),
            "report": None if self.report is None else self.report.plain(),
            "error": None if error is None else {"kind": type(error).__name__, **vars(error)},
        }
