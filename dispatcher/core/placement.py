"""Who goes where. Pure; first in, first out onto the emptiest worker that may be trusted."""

from dispatcher.core.model import State, Trial, Worker


def free_worker(state: State, trial: Trial) -> Worker | None:
    """The worker with the most free slots, ties by name; None if there is none for the trial.

    One on which the trial has just failed comes last: elsewhere it may go well. The
    experiment's ``trialConcurrency`` is a limit of its own, whatever the workers offer.
    """
    if len(state.running) >= state.settings.slots:
        return None
    best: Worker | None = None
    for worker in state.workers.values():
        if takes(worker) and (best is None or _key(worker, trial) < _key(best, trial)):
            best = worker
    return best


def takes(worker: Worker) -> bool:
    """Whether one more attempt may go there."""
    conduct = worker.conduct
    return (
        worker.usable
        and len(worker.running) < worker.slots
        and conduct.quarantined_until is None
        and not (conduct.on_probation and conduct.probe is not None)
    )


def _key(worker: Worker, trial: Trial) -> tuple[bool, int, str]:
    return (worker.id == trial.failed_on, len(worker.running) - worker.slots, worker.id)
