"""Why nothing, or not more, is running: one sentence a user can act on, from the state alone."""

from dataclasses import dataclass
from enum import StrEnum

from dispatcher.core import draining
from dispatcher.core.asking import at_nnis_bound
from dispatcher.core.model import OVER, Phase, State
from dispatcher.core.place_ends import lasts, left_text
from dispatcher.core.placement import takes
from dispatcher.core.settings import ABANDONED_IN_A_ROW
from dispatcher.core.shortage import Short, shortage
from dispatcher.core.stalls import stalled, waits_text
from dispatcher.core.trouble import low_disk_text, trouble_of

#: Seconds after which a delivery that has not returned is worth mentioning.
SLOW_DELIVERY_S = 5.0


class Cause(StrEnum):
    """Everything that can keep a slot empty. A test walks this enumeration."""

    ALL_SLOTS_BUSY = "all slots are busy"
    OVER = "the experiment is over"
    TRIALS_FAIL = "too many trials failed in a row"
    DRAINING = "no new trials are started"
    STALLED = "nothing can move"
    DISK_LOW = "a disk is nearly full"
    TUNER_NOT_READY = "the tuner is not ready"
    WORKER_LOST = "no worker is there"
    WORKER_WAITS = "workers wait in a queue"
    WORKER_SUSPECT = "every worker is silent"
    WORKER_QUARANTINED = "a worker on which trials fail is left out"
    NO_FREE_SLOT = "no worker has a free slot"
    PLACE_ENDS = "the places that are free end too soon"
    RESERVED = "what is free is kept for a larger trial"
    PARENTS_DOMAIN = "there is no place where the parent's weights are"
    NO_FREE_GPU = "no worker has a free GPU"
    NO_ROOM = "no worker has the room"
    BACKOFF = "waiting before another attempt"
    ALL_PROPOSED = "every trial has been proposed"
    ABANDONED = "requests failed with their parents"
    NOT_NOW = "the tuner has nothing to propose now"
    BLOCKED = "requests wait for parents"
    LOOKAHEAD_FULL = "as many requests wait as lookahead allows"
    TUNER_BUSY = "the tuner is thinking"
    TUNER_BEHIND = "the tuner is behind with results"


_OF_SHORTAGE = {
    Short.KEPT: Cause.RESERVED,
    Short.HOME: Cause.PARENTS_DOMAIN,
    Short.DEVICES: Cause.NO_FREE_GPU,
    Short.ROOM: Cause.NO_ROOM,
    Short.SLOTS: Cause.NO_FREE_SLOT,
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A cause and its sentence."""

    cause: Cause
    text: str


def why(state: State, now: float) -> Explanation:
    """The first cause that applies, in the order in which a user can do something about it."""
    running, slots = len(state.running), state.settings.slots
    if state.phase in OVER:
        return _because(Cause.OVER, f"the experiment is {state.phase.value}: {state.phase_reason}")
    if state.phase is not Phase.RUNNING:
        cause = Cause.TRIALS_FAIL if state.failures.tripped else Cause.DRAINING
        text = f"{state.phase.value} ({state.phase_reason}): {running} trials still run"
        waits = draining.sentence(state, now)
        if waits:
            text = f"{state.phase.value} ({state.phase_reason}): {waits}"
        return _because(cause, text)
    if running >= slots:
        return _because(Cause.ALL_SLOTS_BUSY, f"all {slots} slots are busy")
    if state.fail_at is not None:
        return _because(Cause.STALLED, stalled(state, now))
    if not (state.host_ready or state.queued):
        return _because(Cause.TUNER_NOT_READY, "the tuner's process is starting")
    if state.low_disks:
        place, low = next(iter(state.low_disks.items()))
        return _because(Cause.DISK_LOW, low_disk_text(place, low))
    if state.queued:
        return _no_place(state, now)
    if state.backoff:
        first, due = min(state.backoff.items(), key=lambda item: item[1])
        text = f"trial {first} starts its next attempt in {max(0.0, due - now):.0f} s"
        return _because(Cause.BACKOFF, text)
    if state.open:
        first = next(iter(state.open))
        since = now - state.trials[first].since
        text = f"request {first} has been in generate_parameters for {since:.0f} s"
        return _because(Cause.TUNER_BUSY, text)
    return _idle(state, now)


def _no_place(state: State, now: float) -> Explanation:
    """Trials are queued: what keeps each of the workers from taking one?"""
    count = len(state.queued)
    queued = "1 trial is queued" if count == 1 else f"{count} trials are queued"
    workers = state.workers.values()
    beside = "; ".join(trouble_of(worker, now) for worker in workers if trouble_of(worker, now))
    if not any(worker.alive for worker in workers):
        if any(worker.waiting for worker in workers):
            return _because(Cause.WORKER_WAITS, f"{queued}: {beside}")
        text = f"{queued}, and no worker is there to run them"
        return _because(Cause.WORKER_LOST, f"{text}; {beside}" if beside else text)
    if not any(worker.usable for worker in workers):
        return _because(Cause.WORKER_SUSPECT, f"{queued}: {beside}")
    if any(worker.usable and not worker.health.trusted for worker in workers):
        return _because(Cause.WORKER_QUARANTINED, f"{queued}: {beside}")
    brief = _ends_too_soon(state, now)
    if brief:
        return _because(Cause.PLACE_ENDS, f"{queued}: {brief}")
    short = shortage(state)
    if short is not None:
        text = f"{queued}: {short.text}"
        return _because(_OF_SHORTAGE[short.of], f"{text}; {beside}" if beside else text)
    if any(takes(worker) for worker in workers):
        text = f"{queued}, having failed on the worker that is free: they wait for another"
    else:
        text = f"{queued}, and every slot of a worker is taken"
    return _because(Cause.NO_FREE_SLOT, f"{text}; {beside}" if beside else text)


def _ends_too_soon(state: State, now: float) -> str:
    """Why nothing goes to the workers that are free; empty if the places of some last."""
    free = [worker for worker in state.workers.values() if takes(worker)]
    if not free or any(lasts(state, worker) for worker in free):
        return ""
    more = f"; and {len(free) - 1} more such places" if len(free) > 1 else ""
    return left_text(state, free[0], now) + more


def _idle(state: State, now: float) -> Explanation:
    limit = state.settings.max_trials
    waiting = len(state.blocked) + len(state.held)
    asked_for = state.submitted + len(state.blocked)
    if len(state.delivering) > state.settings.slots:
        text = f"the tuner has {len(state.delivering)} results to take before more is asked of it"
        return _because(Cause.TUNER_BEHIND, text)
    if state.delivering:
        first = next(iter(state.delivering))
        since = now - state.trials[first].since
        if since >= SLOW_DELIVERY_S:
            text = f"the tuner has been taking the result of trial {first} for {since:.0f} s"
            return _because(Cause.TUNER_BEHIND, text)
    if waiting and limit is not None and asked_for >= limit:
        text = f"the last of {limit} trials wait: {waits_text(state, now)}"
        return _because(Cause.BLOCKED, text)
    if waiting >= state.lookahead and waiting:
        text = f"{waiting} requests wait, as many as lookahead allows: {waits_text(state, now)}"
        return _because(Cause.LOOKAHEAD_FULL, text)
    if waiting and at_nnis_bound(state):
        text = f"{waiting} requests wait, and NNI asks for {state.asks_at_most} at a time"
        return _because(Cause.LOOKAHEAD_FULL, f"{text}: {waits_text(state)}")
    if state.abandoned_in_a_row >= ABANDONED_IN_A_ROW:
        text = f"the last {state.abandoned_in_a_row} requests failed with their parents"
        if state.abandoned_text:
            text += f" (the last one: {state.abandoned_text})"
        return _because(Cause.ABANDONED, text + "; the tuner is asked again after the next result")
    if state.parked:
        request = next(iter(state.parked))
        text = f"the tuner answered 'not now' to request {request}; it is asked again"
        return _because(Cause.NOT_NOW, text + " after the next result")
    if waiting:
        return _because(Cause.BLOCKED, waits_text(state, now))
    if limit is not None and state.submitted >= limit:
        return _because(Cause.ALL_PROPOSED, f"all {limit} trials were proposed, the last ones run")
    return _because(Cause.TUNER_BUSY, "the next request is about to be opened")


def _because(cause: Cause, text: str) -> Explanation:
    return Explanation(cause, text)
