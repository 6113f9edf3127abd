"""Placement of queued trials. Pure: by priority, then first in, first out, onto the best worker of
those that may be trusted, last long enough, and on which the trial fits.

The best worker is, in this order: not the one on which the trial failed last; the cheapest; where
it breaks into the fewest untouched devices; where its parent's weights lie on the disk; then the
fullest, so that room is kept for large trials. A trial that takes nothing but a slot goes to the
emptiest worker instead. Resources that are kept for a trial which waits too long are
:mod:`dispatcher.core.reservations`.
"""

from typing import NamedTuple

from dispatcher.core.model import State, Trial, Worker
from dispatcher.core.place_ends import lasts
from dispatcher.core.queue_classes import heads, home_of, needs_of
from dispatcher.core.reservations import Reservations
from dispatcher.core.resource_match import domain_of, fit, fits_alone, rules_of, untouched
from dispatcher.core.resources import Needs

#: Different trials that have failed in a row on a worker, from which on a trial that failed
#: there waits for another one. A single failure is more likely the trial's own.
SUSPICIOUS = 2

_Key = tuple[bool, float, int, bool, tuple[float, ...], str]


class Placement(NamedTuple):
    """The place of the next attempt, and the trials that were before it and fit nowhere."""

    trial: Trial
    worker: Worker
    devices: tuple[str, ...] = ()
    passed: tuple[Trial, ...] = ()


def next_placement(state: State) -> Placement | None:
    """The first queued trial for which there is a place; None if there is none.

    The experiment's ``trialConcurrency`` is a limit of its own, whatever the workers offer.
    """
    if not state.queued or len(state.running) >= state.settings.slots:
        return None
    free = [w for w in state.workers.values() if takes(w) and lasts(state, w)]
    if not free:
        return None
    passed: tuple[Trial, ...] = ()
    kept: Reservations | None = None
    for trial in heads(state):
        best = _best(state, trial, free, kept)
        if best is not None:
            worker, devices = best
            return Placement(trial, worker, devices, passed)
        if needs_of(state, trial).counted:  # else whatever gets free would do for it
            passed = (*passed, trial)
            kept = kept or Reservations(state)
            kept.keep_for(trial, may_go)
    return None


def takes(worker: Worker) -> bool:
    """Whether one more attempt may go there."""
    health = worker.health
    return (
        worker.usable
        and len(worker.running) < worker.slots
        and health.quarantined_until is None
        and not (health.on_probation and health.probe is not None)
    )


def may_go(state: State, trial: Trial, worker: Worker) -> bool:
    """Whether the worker is one for this trial, whatever is free there.

    Args:
        state: as it is.
        trial: a queued one.
        worker: any; its free slots and resources are not looked at.
    """
    if worker.id == trial.failed_on and avoids(state, trial, worker):
        return False
    return _reaches(state, trial, worker)


def avoids(state: State, trial: Trial, worker: Worker) -> bool:
    """Whether the trial waits for another worker, having failed on this one, as others did.

    A broken worker ends all it gets at once, and is therefore always free for the retry. There
    must be another one on which the trial would fit, were it alone there.

    Args:
        state: as it is.
        trial: a queued one.
        worker: any.
    """
    if worker.id != trial.failed_on or len(worker.health.failing) < SUSPICIOUS:
        return False
    return any(
        other.usable
        and other.health.trusted
        and _reaches(state, trial, other)
        and fits_alone(state, trial, other)
        for other in state.workers.values()
        if other is not worker
    )


def _reaches(state: State, trial: Trial, worker: Worker) -> bool:
    home = home_of(state, trial)
    return home is None or home == domain_of(state, worker)


def _best(
    state: State, trial: Trial, free: list[Worker], kept: Reservations | None
) -> tuple[Worker, tuple[str, ...]] | None:
    needs = needs_of(state, trial)
    weights = None if trial.parent is None else state.trials[trial.parent].weights
    digest = "" if weights is None else weights.digest
    best: tuple[_Key, Worker, tuple[str, ...]] | None = None
    for worker in free:
        if not may_go(state, trial, worker):
            continue
        rules = rules_of(state, worker)
        devices = fit(needs, worker, rules, None if kept is None else kept.on(worker))
        if devices is None:
            continue
        if len(free) == 1:
            return worker, devices
        breaks, left = _room(needs, worker, devices)
        away = digest not in worker.cached
        key = (worker.id == trial.failed_on, rules.cost, breaks, away, left, worker.id)
        if best is None or key < best[0]:
            best = key, worker, devices
    return None if best is None else best[1:]


def _room(needs: Needs, worker: Worker, devices: tuple[str, ...]) -> tuple[int, tuple[float, ...]]:
    """How many untouched devices a trial would break into, and what it would leave; for one that
    takes only a slot, how much is taken already."""
    if not needs.counted:
        return 0, (len(worker.running) - worker.slots,)
    left: list[float] = []
    breaks = 0
    offer = worker.offer
    if devices:
        whole = untouched(worker)
        breaks = len(whole.intersection(devices))
        left.append(float(len(whole) - breaks))
    if offer is not None and needs.cpus and offer.cpus is not None:
        left.append(offer.cpus - worker.used.cpus)
    if offer is not None and needs.memory_bytes and offer.memory_bytes is not None:
        left.append(float(offer.memory_bytes - worker.used.memory_bytes))
    if offer is not None and needs.custom:
        has = dict(offer.custom)
        left.extend(has[name] - worker.used.custom.get(name, 0.0) for name, _ in needs.custom)
    left.append(float(worker.slots - len(worker.running)))
    return breaks, tuple(left)
