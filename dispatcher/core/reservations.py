"""Resources that are kept for trials which others have overtaken too often.

A trial that needs eight GPUs of one host would never start where small ones come all the time:
each takes the one GPU that has just become free. After ``PASSED_OVER`` of them have begun before
it, the host that can be freed soonest is kept for it: later trials are placed there as if it ran
there already, so that nothing but what runs delays it.

Nothing is remembered but how often a trial was overtaken; the host is looked for each time, by how
few trials have to end there. A kept host can only become less busy, so the number of ends that is
waited for never grows while the hosts stay as they are.
"""

from collections.abc import Callable
from dataclasses import replace

from dispatcher.core.ids import WorkerId
from dispatcher.core.model import State, Trial, Worker
from dispatcher.core.place_ends import lasts
from dispatcher.core.queue_classes import needs_of
from dispatcher.core.resource_match import Kept, fit, has_room, recount, rules_of, suited
from dispatcher.core.resources import Needs

#: Later trials that may begin before a waiting one: as many as a large host has GPUs, so that
#: one turnover of such a host costs nobody anything.
PASSED_OVER = 8

MayGo = Callable[[State, Trial, Worker], bool]


class Reservations:
    """All reservations of one look over the queue, which goes from the first trial to the last."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._kept: dict[WorkerId, Kept] = {}

    def on(self, worker: Worker) -> Kept | None:
        """The reservation on a worker; None for none."""
        return self._kept.get(worker.id)

    def keep_for(self, trial: Trial, may_go: MayGo) -> None:
        """Keep the host that is free soonest for a trial that has waited long enough."""
        if trial.passed_over < PASSED_OVER:
            return
        state, needs = self._state, needs_of(self._state, trial)
        candidates: list[tuple[tuple[int, float, float, str], Worker, tuple[str, ...]]] = []
        for worker in state.workers.values():
            if not (worker.usable and worker.health.trusted and lasts(state, worker)):
                continue
            if not may_go(state, trial, worker):
                continue
            cleared = _cleared(state, needs, worker, self.on(worker))
            if cleared is not None:
                devices, ends, since = cleared
                key = (ends, rules_of(state, worker).cost, since, worker.id)
                candidates.append((key, worker, devices))
        if candidates:
            _, worker, devices = min(candidates, key=lambda one: one[0])
            kept = self._kept.setdefault(worker.id, Kept())
            kept.trials.append(trial)
            kept.devices.update(devices)
            kept.used.add(needs, devices, rules_of(state, worker).share_of(needs))


def _cleared(
    state: State, needs: Needs, worker: Worker, kept: Kept | None
) -> tuple[tuple[str, ...], int, float] | None:
    """The devices on which the trial would run there, how many trials have to end before, and since
    when the newest of these runs; None if it would not fit on the cleared host."""
    wanted = _least_busy(needs, worker, kept)
    if wanted is None:
        return None
    rules = rules_of(state, worker)

    def order(trial: Trial) -> tuple[bool, bool, float, int]:
        """Sort trials in the way first, of these the oldest: they have run the longest."""
        there = not set(wanted).isdisjoint(trial.devices)
        return (not there, not needs_of(state, trial).counted, trial.since, trial.id)

    ending = sorted((state.trials[trial_id] for trial_id in worker.running), key=order)
    cleared = replace(worker, running=set(worker.running))
    since = 0.0
    for ends in range(len(ending) + 1):
        room = all(has_room(needs, device, cleared.used, rules) for device in wanted)
        if room and fit(needs, cleared, rules, kept) is not None:
            return wanted, ends, since
        if ends < len(ending):
            cleared.running.discard(ending[ends].id)
            recount(state, cleared)
            since = max(since, ending[ends].since)
    return None


def _least_busy(needs: Needs, worker: Worker, kept: Kept | None) -> tuple[str, ...] | None:
    if not needs.gpus:
        return ()
    taken = kept.devices if kept is not None else set()
    offer = worker.offer
    free = [] if offer is None else [d for d in suited(needs, offer) if not d.trouble]
    free = [device for device in free if device.id not in taken]
    if len(free) < needs.devices:
        return None
    used = worker.used
    free.sort(key=lambda d: (used.trials.get(d.id, 0), used.shares.get(d.id, 0.0), d.index, d.id))
    return tuple(device.id for device in free[: needs.devices])
