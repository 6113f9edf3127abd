"""The errors of the dispatcher, under four bases that answer one question: whose fault is it?

Those that several rooms raise or catch are here; a room's own derive from these.

Every error carries a sentence (its text), ``hint`` (what to do about it) and ``where``
(a place a person can go to: ``file:line:column``, a trial, a host). The command line
prints these three and exits with the base's ``exit_code``; a traceback is shown for
:class:`InternalError` only.
"""

from __future__ import annotations

from collections.abc import Sequence

from trial_runtime.errors import BequeathError

MOST_SHOWN = 20
"""Beyond this a list of errors is noise: the first few usually explain the rest."""


class DispatcherError(BequeathError):
    """Base of everything the dispatcher raises on purpose."""

    exit_code: int = 1


class SeveralErrors(DispatcherError):
    """Errors that were found together. With one it reads like that one; with several, ``str()``
    shows one after the other, at most :data:`MOST_SHOWN`.

    Args:
        errors: at least one, in the order in which people should read them. The highest exit code
            counts.
    """

    def __init__(self, errors: Sequence[DispatcherError]) -> None:
        self.errors = tuple(errors)
        self.exit_code = max(error.exit_code for error in errors)
        first = self.errors[0]
        if len(self.errors) == 1:
            super().__init__(first.message, hint=first.hint, where=first.where)
            return
        shown = [str(error) for error in self.errors[:MOST_SHOWN]]
        if len(self.errors) > MOST_SHOWN:
            shown.append(f"… and {len(self.errors) - MOST_SHOWN} more")
        super().__init__("\n".join(shown))


class UserError(DispatcherError):
    """The experiment file, the tuner's code or the trial's code is wrong."""

    exit_code = 3


class BackendError(DispatcherError):
    """The world outside is in the way: a host, a disk, a quota."""

    exit_code = 4


class PassingBackendError(BackendError):
    """A fault that may be over when the same thing is tried again."""


class PermanentBackendError(BackendError):
    """A fault that trying again does not mend."""


class ProtocolError(DispatcherError):
    """A peer sent what it may not send; its session is closed and nobody else is harmed."""

    exit_code = 5


class InternalError(DispatcherError):
    """A fault of bequeath itself; please report it."""

    exit_code = 70


class ExperimentFileError(UserError):
    """Raised when an experiment file cannot be read as one."""


class TunerCodeError(UserError):
    """Raised when a tuner class is missing, cannot be built, or returns nonsense."""


class ExperimentNotFound(UserError):
    """Raised when no experiment goes by the given name or id."""


class ExperimentBusy(UserError):
    """Raised when another head already leads this experiment."""


class Superseded(BackendError):
    """Raised in a head from which another one has taken over: it may decide nothing more."""

    exit_code = 7


class StoreError(BackendError):
    """Raised when the journal cannot be opened, read or written."""


class StoreBusy(StoreError):
    """Raised when another process keeps the store locked for longer than we wait."""


class InvalidTransition(InternalError):
    """Raised when an event arrives that the state it meets does not allow."""


class BrokenInvariant(InternalError):
    """Raised when the state contradicts itself; ``trial`` is the one whose record does, if any."""

    def __init__(self, message: str, *, trial: int | None = None) -> None:
        super().__init__(message)
        self.trial = trial
