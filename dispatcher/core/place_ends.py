"""The ends of places: whether an attempt may still begin there, for want of time or since the place
has had all attempts that it is for.

A place that a scheduler lends is taken back at a moment that is known. No attempt begins where it
could not end in time. What still runs shortly before hands over
(:mod:`dispatcher.core.handing_over`).

Whether a place lasts is the same question for all trials of an experiment. Time only ever makes the
answer worse, so nobody has to be woken to find a place.
"""

from dispatcher.core.model import Phase, State, Worker
from dispatcher.core.resources import NO_RULES
from dispatcher.core.settings import Settings


def must_last_s(settings: Settings) -> float:
    """How long a place must last for an attempt to begin there (seconds); 0: no matter."""
    return max(settings.longest_trial_s or 0.0, settings.hand_over_s)


def lasts(state: State, worker: Worker, now: float | None = None) -> bool:
    """Whether an attempt may begin there, and ends before its place is taken back.

    Args:
        state: as it is.
        worker: whose place it is.
        now: seconds since the epoch; None: when the newest event came.
    """
    if _has_had_all(state, worker):
        return False
    ends_at = end_of(worker)
    if ends_at is None:
        return True
    needed_s, now = must_last_s(state.settings), state.now if now is None else now
    return not worker.closing and (not needed_s or now + needed_s < ends_at)


def _has_had_all(state: State, worker: Worker) -> bool:
    """Whether as many attempts have begun in its place as the file wants there."""
    if not worker.begun:
        return False
    most = state.settings.worker_rules.get(worker.id, NO_RULES).trials_per_place
    return 0 < most <= worker.begun


def spent_text(state: State, worker: Worker, now: float) -> str:
    """Why nothing may ever begin any more in the place that a worker has, so that the next place is
    of more use; empty if something may.

    Args:
        state: as it is.
        worker: whose place it is.
        now: seconds since the epoch.
    """
    if state.phase is not Phase.RUNNING or not worker.usable or lasts(state, worker, now):
        return ""
    if _has_had_all(state, worker):
        return "its place has had all trials that it is for"
    return "its place ends too soon for another trial"


def left_text(state: State, worker: Worker, now: float) -> str:
    """How long the place of a worker lasts, and what a trial takes: for ``why``.

    Args:
        state: as it is.
        worker: in whose place nothing may begin.
        now: seconds since the epoch.
    """
    ends_at = end_of(worker)
    if ends_at is None or _has_had_all(state, worker):
        return f"the place of {worker.id} has had all trials that it is for"
    left_s = max(0.0, ends_at - now)
    return (
        f"the place of {worker.id} ends in {left_s:.0f} s, and what begins there must have "
        f"{must_last_s(state.settings):.0f} s"
    )


def note_ends(state: State) -> None:
    """Note the first end of a place from which nothing was asked to go yet: called when a worker
    has come, gone, or offers something else."""
    state.first_end = first_end_of(state)


def first_end_of(state: State) -> float | None:
    """The first end of a place from which nothing was asked to go yet; None: there is none."""
    ends = (end_of(w) for w in state.workers.values() if w.alive and not w.closing)
    return min((end for end in ends if end is not None), default=None)


def next_hand_over(state: State) -> float | None:
    """When something has to be asked to go (seconds since the epoch); None: never."""
    if state.first_end is None or not state.settings.hand_over_s:
        return None
    return state.first_end - state.settings.hand_over_s


def end_of(worker: Worker) -> float | None:
    """When the place of a worker is taken back (seconds since the epoch); None: not known."""
    return None if worker.offer is None else worker.offer.ends_at
