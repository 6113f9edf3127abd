"""Who goes where. Pure; today the rule is first in, first out onto the emptiest worker."""

from dispatcher.core.model import State, Worker


def free_worker(state: State) -> Worker | None:
    """The living worker with the most free slots, ties by name; None if all are full.

    The experiment's ``trialConcurrency`` is a limit of its own, whatever the workers offer.
    """
    if len(state.running) >= state.settings.slots:
        return None
    best: Worker | None = None
    for worker in state.workers.values():
        if not worker.usable or len(worker.running) >= worker.slots:
            continue
        if best is None or _key(worker) < _key(best):
            best = worker
    return best


def _key(worker: Worker) -> tuple[int, str]:
    return (len(worker.running) - worker.slots, worker.id)
