"""Errors of a Python on another machine, by whether trying again helps."""

from __future__ import annotations

from dispatcher.errors import PassingBackendError, PermanentBackendError


class HostUnfit(PermanentBackendError):
    """Raised when a machine lacks something that trials need; the text names it, and a remedy."""


class NoPython(HostUnfit):
    """Raised when the machine has no such Python, or one that is too old for our programs."""


class ProgramFailed(PassingBackendError):
    """Raised when a program of ours fails there, or when its answer is none that it gives."""


class TransferFailed(PermanentBackendError):
    """Raised when a file cannot be read or written there: no such folder, no permission."""


class HostDiskFull(PassingBackendError):
    """Raised when the machine has no room for what is sent to it."""
