"""Who goes where. Pure; first in, first out onto the emptiest worker that may be trusted."""

from typing import NamedTuple

from dispatcher.core.model import State, Trial, Worker

#: Different trials that have failed in a row on a worker, from which on a trial that failed
#: there waits for another one. A single failure is more likely the trial's own.
SUSPICIOUS = 2


class Placement(NamedTuple):
    """Where the next attempt goes."""

    trial: Trial
    worker: Worker


def next_placement(state: State) -> Placement | None:
    """The first queued trial for which there is a place; None if there is none.

    The experiment's ``trialConcurrency`` is a limit of its own, whatever the workers offer.
    """
    if not state.queued or len(state.running) >= state.settings.slots:
        return None
    free = [worker for worker in state.workers.values() if takes(worker)]
    if not free:
        return None
    for trial_id in state.queued:  # the first one, but for those that avoid all that is free
        trial = state.trials[trial_id]
        fit = [worker for worker in free if not avoids(state, trial, worker)]
        if fit:
            return Placement(trial, min(fit, key=lambda worker: _key(worker, trial)))
    return None


def takes(worker: Worker) -> bool:
    """Whether one more attempt may go there."""
    conduct = worker.conduct
    return (
        worker.usable
        and len(worker.running) < worker.slots
        and conduct.quarantined_until is None
        and not (conduct.on_probation and conduct.probe is not None)
    )


def avoids(state: State, trial: Trial, worker: Worker) -> bool:
    """Whether the trial waits for another worker, having failed on this one, as others did.

    A broken worker ends all it gets at once, and is therefore always free for the retry.
    """
    if worker.id != trial.failed_on or len(worker.conduct.failing) < SUSPICIOUS:
        return False
    return any(
        other.usable and other.conduct.trusted
        for other in state.workers.values()
        if other is not worker
    )


def _key(worker: Worker, trial: Trial) -> tuple[bool, int, str]:
    """The emptiest first, ties by name; the one on which the trial failed last."""
    return (worker.id == trial.failed_on, len(worker.running) - worker.slots, worker.id)
