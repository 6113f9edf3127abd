"""Workers on which attempts fail one after another, while they go well elsewhere.

Such a worker (a full scratch disk, a stuck driver) ends everything quickly, is therefore
always the emptiest, and would draw in and fail trial after trial. It is left out for a
while, then given one attempt as a probe: if that ends well all is forgiven, else it is left
out for twice as long. A trial that fails on two workers is not held against either of them.
"""

from dispatcher.core.actions import Action, ReportWorker
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, State, Trial, Worker, WorkerHealth
from dispatcher.core.settings import QUARANTINE_MAX_S

#: Ends that may be the fault of the place.
_BLAMED = frozenset(
    {
        EndReason.FAILED,
        EndReason.SIGNALLED,
        EndReason.OUT_OF_MEMORY,
        EndReason.START_FAILED,
        EndReason.TIMED_OUT,
    }
)


def judge(state: State, worker: Worker, trial: Trial, reason: EndReason, out: list[Action]) -> None:
    """Update the worker's health now that an attempt is over there.

    Args:
        state: changed in place.
        worker: where the attempt ran.
        trial: the attempt's.
        reason: how the attempt ended.
        out: gets a report if the worker is left out, or works again.
    """
    health = worker.health
    was_probe = health.probe == trial.id
    if was_probe:
        health.probe = None
    if health.quarantined_until is not None:
        return  # begun before it was left out
    if reason is EndReason.FINISHED:
        if health.on_probation:
            out.append(ReportWorker(worker.id, f"worker {worker.id} works again"))
        worker.health = WorkerHealth(went_well_at=state.now)
    elif reason not in _BLAMED:
        return
    elif health.on_probation:
        if was_probe and _another_usable(state, worker):
            _leave_out(state, worker, f"trial {trial.id} failed there as well", out)
    elif not _failed_elsewhere(state, worker, trial.id):
        _hold_against(state, worker, trial.id, out)


def _failed_elsewhere(state: State, worker: Worker, trial: TrialId) -> bool:
    failed = False
    for other in state.workers.values():
        if other is not worker and trial in other.health.failing:
            del other.health.failing[trial]
            failed = True
    return failed


def _hold_against(state: State, worker: Worker, trial: TrialId, out: list[Action]) -> None:
    limit = state.settings.quarantine_after
    if not limit:
        return
    health = worker.health
    if not health.failing:
        health.failing_since = state.now
    if len(health.failing) < limit:
        health.failing[trial] = None
    if len(health.failing) >= limit and _goes_well_elsewhere(state, worker):
        _leave_out(state, worker, f"{limit} trials failed there one after another", out)


def _goes_well_elsewhere(state: State, worker: Worker) -> bool:
    since = worker.health.failing_since
    return any(
        other.usable
        and other.health.trusted
        and other.health.went_well_at is not None
        and other.health.went_well_at >= since
        for other in state.workers.values()
        if other is not worker
    )


def _another_usable(state: State, worker: Worker) -> bool:
    return any(
        other.usable and other.health.quarantined_until is None
        for other in state.workers.values()
        if other is not worker
    )


def _leave_out(state: State, worker: Worker, why: str, out: list[Action]) -> None:
    health = worker.health
    first_s = state.settings.quarantine_pause_s
    longest_s = max(first_s, QUARANTINE_MAX_S)
    pause_s = min(first_s * 2.0 ** min(health.quarantines, 30), longest_s)
    health.quarantines += 1
    health.quarantined_until = state.now + pause_s
    health.on_probation = False
    state.first_return = first_return_of(state)
    health.failing.clear()
    text = f"worker {worker.id} is left out for {pause_s:.0f} s: {why}"
    out.append(ReportWorker(worker.id, text))


def end_quarantines(state: State) -> None:
    """Give a probe to each worker whose quarantine is over, or that is the only one left."""
    if state.first_return is None:
        return
    for worker in state.workers.values():
        until = worker.health.quarantined_until
        if until is not None and (until <= state.now or not _another_usable(state, worker)):
            worker.health.quarantined_until = None
            worker.health.on_probation = True
            state.all_wait = False
    state.first_return = first_return_of(state)


def first_return_of(state: State) -> float | None:
    """When the first worker is to come back that is left out; None: none is."""
    ends = (worker.health.quarantined_until for worker in state.workers.values())
    return min((end for end in ends if end is not None), default=None)
