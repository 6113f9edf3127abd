"""A ``wait_for`` that has not returned, and its outcome by the head's answer."""

from __future__ import annotations

from _thread import allocate_lock

from dispatcher.core.actions import AnswerWait
from dispatcher.core.ids import TrialId
from dispatcher.core.model import FailReason
from dispatcher.tuner_host.request import Request
from tuners.errors import CycleRefused, ParentFailed, SelfWait, UnknownParent


class PendingWait:
    """A ``wait_for`` that has not returned.

    ``ticket`` is a lock, taken at the beginning and released once: half the memory and none of the
    second lock that an Event would cost each of ten thousand blocked threads.
    """

    __slots__ = (
        "answer",
        "gone",
        "mode",
        "number",
        "parents",
        "request",
        "store",
        "ticket",
        "timed",
        "version",
    )

    def __init__(
        self,
        request: Request,
        number: int,
        parents: tuple[int, ...],
        mode: str,
        store: str = "",
        version: int = 0,
    ) -> None:
        self.request = request
        self.number = number
        self.parents = parents
        self.mode = mode
        self.store = store
        self.version = version
        self.answer: list[int] | BaseException | None = None
        self.timed = False  # it ends by itself
        self.gone = allocate_lock()  # the first thread to take it decides: woken, or gone by itself
        self.ticket = allocate_lock()
        self.ticket.acquire()

    def wake(self) -> bool:
        """Release the thread; false if it has gone by itself."""
        if not self.gone.acquire(blocking=False):
            return False
        self.ticket.release()
        return True


def is_trial(number: int) -> bool:
    """Whether a number could be a trial's: others cannot even be sent."""
    return 0 <= number < 1 << 63


def outcome(wait: PendingWait, action: AnswerWait) -> list[int] | BaseException:
    """The value that ``wait_for`` returns, or the error that it raises, after the head's answer."""
    match action.kind:
        case "granted" if wait.mode == "version":
            return [action.version]
        case "granted":
            opened = set(action.parents)
            return [parent for parent in wait.parents if parent in opened]
        case "failed":
            assert action.parent is not None
            return parent_failed(action.parent, action.reason, action.chain)
        case "unknown":
            return UnknownParent(action.parent if action.parent is not None else -1)
        case "self":
            return SelfWait(wait.request.trial)
        case _:
            return CycleRefused(action.chain[:-1])


def parent_failed(
    parent: int, reason: FailReason | None, chain: tuple[TrialId, ...]
) -> ParentFailed:
    """Make the error of a wait for ``parent``.

    Args:
        parent: the trial that cannot bequeath.
        reason: why; None if that is not known.
        chain: ancestors that failed, from ``parent`` on, which may be left out.
    """
    whole = chain if not chain or chain[0] == parent else (parent, *chain)
    return ParentFailed(parent, reason.value if reason is not None else "failed", whole)
