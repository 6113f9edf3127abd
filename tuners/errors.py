"""Errors between a tuner and the dispatcher, one sentence each.

Every error keeps plain attributes (ints, strings, tuples), so that it can be journalled and sent
between processes without pickle, and a ``hint``: what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence

from trial_runtime.errors import BequeathError


class TunerError(BequeathError):
    """Base of the errors of this package. Its text is one line: message and hint.

    Args:
        message: one sentence saying what happened.
        hint: one sentence saying what to do, or empty.
    """

    message = hint = ""  # of authors' errors that do not call ours when they are made

    def __init__(self, message: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip() or Exception.__str__(self)


class NoMoreTrialError(TunerError):
    """Raise it in ``generate_parameters`` to say: no parameters for now.

    While anything runs it means *not now*: the request is asked again after the next result.
    Only when nothing runs is the tuner done. (NNI knows it by the same name.)
    """

    def __init__(self, message: str = "the tuner has no more parameters to try") -> None:
        super().__init__(message)


class ParentFailed(TunerError):
    """A parent ended and cannot bequeath; uncaught, it ends the request as abandoned.

    Attributes:
        parent: ``parameter_id`` that was waited for.
        reason: why it cannot bequeath, e.g. ``"weights missing"`` or ``"exit code 1"``.
        chain: ids from that parent to the trial where it began, when it failed for one of its own.
    """

    def __init__(self, parent: int, reason: str, chain: Sequence[int] = ()) -> None:
        self.parent = parent
        self.reason = reason
        self.chain = tuple(chain)
        path = f" ({' <- '.join(str(link) for link in self.chain)})" if len(self.chain) > 1 else ""
        super().__init__(
            f"trial {parent} cannot bequeath its weights: {reason}{path}.",
            "Catch ParentFailed and choose another parent, or pass fallback= to wait_for.",
        )


class UnknownParent(TunerError):
    """No request and no trial has this ``parameter_id``."""

    def __init__(self, parent: int) -> None:
        self.parent = parent
        super().__init__(
            f"there is no trial with parameter_id {parent}.",
            "Wait for ids that generate_parameters was called with, in this experiment.",
        )


class WaitCancelled(BaseException):
    """The experiment is stopping, or this request was cancelled.

    A BaseException, so that an author's ``except Exception`` does not swallow it; every later
    wait of the same request raises it again.
    """

    def __init__(self, reason: str = "the experiment is stopping") -> None:
        self.reason = reason
        self.message = f"the wait was cancelled: {reason}."
        self.hint = "Let it pass: clean up in a finally block if you must, and do not wait again."
        super().__init__(f"{self.message} {self.hint}")


class WaitTimeout(TunerError):
    """The parents had not ended within ``timeout`` seconds."""

    def __init__(self, parents: Sequence[int], timeout_s: float) -> None:
        self.parents = tuple(parents)
        self.timeout_s = timeout_s
        super().__init__(
            f"{_trials(self.parents)} had not ended after {timeout_s:g} s.",
            "Catch WaitTimeout and go on without it, or leave timeout out to wait to the end.",
        )


class VersionTimeout(WaitTimeout):
    """A shared store did not have the version within ``timeout`` seconds."""

    def __init__(self, store: str, number: int, by: int | None, timeout_s: float) -> None:
        self.store = store
        self.number = number
        self.parents = () if by is None else (by,)
        self.timeout_s = timeout_s
        TunerError.__init__(
            self,
            f"there was no {awaited_version(store, number, *self.parents)} after {timeout_s:g} s.",
            "Catch VersionTimeout and go on without it, or leave timeout out to wait to the end.",
        )


class WaitRefused(TunerError):
    """Base of waits that could never end, or could never be allowed."""


class SelfWait(WaitRefused):
    """A request waits for its own trial."""

    def __init__(self, parameter_id: int) -> None:
        self.parameter_id = parameter_id
        super().__init__(
            f"request {parameter_id} waits for itself.",
            "Its trial starts only once generate_parameters returns: wait for another id.",
        )


class CycleRefused(WaitRefused):
    """This wait would close a ring of requests that wait for one another.

    Attributes:
        cycle: the ids in waiting order; the last one waits for the first.
    """

    def __init__(self, cycle: Sequence[int]) -> None:
        self.cycle = tuple(cycle)
        ring = " -> ".join(str(link) for link in (*self.cycle, *self.cycle[:1]))
        super().__init__(
            f"requests would wait for one another in a ring: {ring}.",
            "Wait only for ids smaller than your own, or for trials that were proposed already.",
        )


class WaitNotAllowed(WaitRefused, RuntimeError):
    """``wait_for`` was called where nothing may block."""

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason = reason
        super().__init__(f"wait_for is not allowed here: {reason}.", hint)


class WaitWithLock(WaitRefused):
    """``wait_for`` was called while this thread holds ``self.lock``.

    The result that is waited for is delivered by ``receive_trial_result``, which usually needs
    that lock: the wait would block what it waits for.
    """

    def __init__(self, parents: Sequence[int] = (), where: str = "") -> None:
        self.parents = tuple(parents)
        at = f" ({where})" if where else ""
        super().__init__(
            f"waiting for {_trials(self.parents)} while holding self.lock{at} would block "
            "the very result that is waited for.",
            "Leave the 'with self.lock' block first, then call wait_for.",
        )
        self.where = where


class TunerArgumentError(TunerError, ValueError):
    """A class argument of a built-in tuner is unknown, missing or out of range."""


def awaited_version(store: str, number: int, *by: int) -> str:
    """The version of a shared store that is waited for, for messages."""
    if by:
        return f"version of the shared store {store!r} by {_trials(by)}"
    return f"version {number} of the shared store {store!r}"


def _trials(ids: Sequence[int]) -> str:
    if not ids:
        return "another trial"
    named = ", ".join(str(parent) for parent in ids[:8]) + (", …" if len(ids) > 8 else "")
    return f"trial {named}" if len(ids) == 1 else f"trials {named}"
