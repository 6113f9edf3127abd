"""Errors by whose fault they are. The command line turns these into its own.

Their base is written out here, as this package knows no other: it is sent to machines alone.
"""

from __future__ import annotations


class SetupError(Exception):
    """Base: a sentence, what to do about it (``hint``), and the place it is about (``where``)."""

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where

    def plain(self) -> dict[str, str]:
        """Return the error as JSON has it."""
        return {"kind": type(self).__name__, **vars(self)}

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  {self.hint}" if self.hint else ""
        return f"{place}{self.message}{advice}"


class RequestRefused(SetupError):
    """Raised when what was asked for is wrong or unsafe, whatever the machine is like."""


class MachineRefuses(SetupError):
    """Raised when this machine is in the way: no root, no such package, a mount in use."""


class RollbackFailed(MachineRefuses):
    """Raised when a step failed and what was done before it could not all be taken back."""
