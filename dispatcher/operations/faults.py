"""The kinds of errors that operations raise, by name: exit code of a command, status of a route."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from dispatcher.errors import (
    BackendError,
    DispatcherError,
    ExperimentBusy,
    ExperimentFileError,
    ExperimentNotFound,
    InternalError,
    PassingBackendError,
    ProtocolError,
    SeveralErrors,
    StoreBusy,
    Superseded,
    UserError,
)
from dispatcher.folders.ownership import NotOurs
from dispatcher.queries import TrialNotFound, WhereError


class ErrorKind(NamedTuple):
    """A kind of error: scripts may rely on its word, and on both numbers."""

    kind: str
    exit_code: int
    status: int
    meaning: str


#: The nearest base of an error counts.
FAULTS: Final[dict[type[DispatcherError], ErrorKind]] = {
    DispatcherError: ErrorKind("failed", 1, 500, "it cannot be done"),
    UserError: ErrorKind("refused", 3, 400, "what was asked for is wrong, or cannot be had"),
    WhereError: ErrorKind(
        "condition", 3, 400, "a condition cannot be read; `where` has its column"
    ),
    ExperimentFileError: ErrorKind("file", 3, 400, "an experiment file or setting is wrong"),
    NotOurs: ErrorKind("not-ours", 3, 403, "the experiment is somebody else's"),
    ExperimentNotFound: ErrorKind("no-experiment", 3, 404, "no experiment goes by that name"),
    TrialNotFound: ErrorKind("no-trial", 3, 404, "the experiment has no such trial"),
    ExperimentBusy: ErrorKind(
        "busy", 3, 409, "a head leads the experiment, or somebody cares for it"
    ),
    BackendError: ErrorKind("environment", 4, 502, "the world outside is in the way"),
    StoreBusy: ErrorKind("store-busy", 4, 503, "the store is locked by another process; try again"),
    PassingBackendError: ErrorKind("not-now", 4, 503, "no head runs or answers; it may later"),
    ProtocolError: ErrorKind("protocol", 5, 502, "another process broke the protocol"),
    Superseded: ErrorKind("superseded", 7, 409, "another head has taken over"),
    InternalError: ErrorKind("internal", 70, 500, "a fault of bequeath itself; please report it"),
}


class Problem(msgspec.Struct, frozen=True):
    """An error as it is answered: what is wrong, what to do about it, and where."""

    kind: str
    message: str
    hint: str
    where: str
    exit_code: int
    errors: list[Problem] = []  # several that were found together


class Failure(msgspec.Struct, frozen=True):
    """The answer of a route that cannot give its own."""

    error: Problem


def fault_of(error: DispatcherError) -> ErrorKind:
    """Return the kind of an error."""
    base = next(kind for kind in type(error).__mro__ if kind in FAULTS)
    return FAULTS[base]


def problem_of(error: DispatcherError) -> Problem:
    """Return an error as it is answered; its exit code may be its own."""
    several = error.errors if isinstance(error, SeveralErrors) else ()
    kind = fault_of(several[0]).kind if several else fault_of(error).kind
    return Problem(
        kind=kind,
        message=error.message,
        hint=error.hint,
        where=error.where,
        exit_code=error.exit_code,
        errors=[problem_of(one) for one in several] if len(several) > 1 else [],
    )
