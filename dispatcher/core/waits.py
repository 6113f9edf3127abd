"""Waits: the edges from requests and trials to the parents that they wait for.

The edges are drawn here when ``wait_for`` is called and when a proposed trial is held for a parent
that has not ended. An edge that would close a cycle is refused, so that a chain of waits always
ends at something that can move.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from dispatcher.core.ids import TrialId
from dispatcher.core.model import FailReason, State, Verdict, Wait


class Answer(NamedTuple):
    """The result of a wait: ``granted``, ``failed`` by ``parent``, or still ``pending``."""

    kind: str
    parent: TrialId | None = None
    verdict: Verdict | None = None


GRANTED = Answer("granted")


def resolve(
    parents: Iterable[TrialId], mode: str, verdict_of: Callable[[TrialId], Verdict | None]
) -> Answer:
    """Decide whether a wait is over: the one rule, which the tuner host uses, too.

    ``all``: fails with the first parent that failed, granted when every gate is open. ``any``:
    granted with the first open gate, fails when every parent failed.

    Args:
        parents: of the wait.
        mode: ``all`` or ``any``.
        verdict_of: the verdict of a trial; None while its gate is closed.
    """
    pending = False
    failed: Answer | None = None
    for parent in parents:
        verdict = verdict_of(parent)
        if verdict is None:
            pending = True
        elif verdict.ok:
            if mode == "any":
                return Answer("granted", parent)
        else:
            failed = failed or Answer("failed", parent, verdict)
            if mode == "all":
                return failed
    if pending:
        return Answer("pending")
    if mode == "any" and failed is not None:
        return failed
    return Answer("granted")


def find_cycle(
    state: State, waiter: TrialId, parents: Iterable[TrialId]
) -> tuple[TrialId, ...] | None:
    """The cycle that the edges waiter → parents would close (first equals last), or None.

    Depth-first over the waits; each node is visited once, so the cost is that of the
    waits reachable from the parents.

    Args:
        state: as it is.
        waiter: the request or trial that would wait.
        parents: the ones it would wait for.
    """
    came_from: dict[TrialId, TrialId] = {}
    stack = []
    for parent in parents:
        if parent not in came_from:
            came_from[parent] = waiter
            stack.append(parent)
    while stack:
        node = stack.pop()
        if node == waiter:
            path = [waiter]
            step = came_from[waiter]
            while step != waiter:
                path.append(step)
                step = came_from[step]
            path.append(waiter)
            return tuple(reversed(path))
        wait = state.waits.get(node)
        if wait is None:
            continue
        for above in wait.missing:
            if above not in came_from:
                came_from[above] = node
                stack.append(above)
    return None


def draw(
    state: State,
    waiter: TrialId,
    ticket: int,
    parents: tuple[TrialId, ...],
    mode: str,
    store: str = "",
    version: int = 0,
) -> None:
    """Enter a wait whose answer is still pending.

    Args:
        state: changed in place.
        waiter: the request or held trial.
        ticket: the number of the wait in its request; 0 for a held trial.
        parents: empty for a foreign wait.
        mode: as in :class:`~dispatcher.core.model.Wait`.
        store: the shared store of which a version is awaited; empty for none.
        version: its number; 0 for any that a parent publishes.
    """
    missing = {p for p in parents if state.trials[p].verdict is None}
    state.waits[waiter] = Wait(ticket, parents, mode, missing, state.now, store, version)
    for parent in missing:
        state.waiters.setdefault(parent, {})[waiter] = None
    if store:
        state.version_waiters.setdefault(store, {})[waiter] = None


def erase(state: State, waiter: TrialId) -> None:
    """Forget a wait."""
    wait = state.waits.pop(waiter, None)
    if wait is None:
        return
    if wait.store:
        _erase_of_store(state, waiter, wait.store)
    for parent in wait.missing:
        others = state.waiters.get(parent)
        if others is not None:
            others.pop(waiter, None)
            if not others:
                del state.waiters[parent]


def _erase_of_store(state: State, waiter: TrialId, store: str) -> None:
    waiting = state.version_waiters.get(store)
    if waiting is not None:
        waiting.pop(waiter, None)
        if not waiting:
            del state.version_waiters[store]


def released_by(state: State, parent: TrialId) -> list[tuple[TrialId, Wait, Answer]]:
    """The waits that the verdict on ``parent`` ends; they are erased, the rest is kept.

    Ten thousand may wait for one parent: what is the same for all of them is worked out once.
    """
    verdict = state.trials[parent].verdict
    assert verdict is not None
    failed = None if verdict.ok else Answer("failed", parent, verdict)
    ended = []
    for waiter in state.waiters.pop(parent, {}):
        wait = state.waits[waiter]
        wait.missing.discard(parent)
        if wait.mode == "version":  # what it published before its end was answered then
            answer = failed or Answer("failed", parent, Verdict(FailReason.NO_VERSION))
            _erase_of_store(state, waiter, wait.store)
        elif wait.mode == "any":
            answer = resolve(wait.parents, wait.mode, lambda p: state.trials[p].verdict)
            if answer.kind == "pending":
                continue
        elif failed is not None:
            answer = failed
        elif wait.missing:
            continue
        else:
            answer = GRANTED
        if wait.missing:
            erase(state, waiter)
        else:
            del state.waits[waiter]
        ended.append((waiter, wait, answer))
    return ended
