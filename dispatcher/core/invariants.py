"""The invariants: they hold after every event, and are recounted from the trials alone.

On after each event in tests and simulation, and under ``debug``; costs a walk over all trials.
"""

from dataclasses import replace

from dispatcher.core.model import AttemptState, Outcome, State, Trial, TrialState, Worker
from dispatcher.core.place_ends import first_end_of
from dispatcher.core.quarantine import first_return_of
from dispatcher.core.queue_classes import group_queue, needs_of
from dispatcher.core.resource_match import recount
from dispatcher.core.stores import there
from dispatcher.errors import BrokenInvariant


def check(state: State) -> None:
    """Recount everything that is kept twice. Raises :class:`BrokenInvariant`."""
    _collections(state)
    _waits(state)
    on_workers = [t for w in state.workers.values() for t in w.running]
    _must(sorted(on_workers) == sorted(state.running), "workers and running trials differ")
    for worker in state.workers.values():
        silent = worker.suspect_since is not None
        _must(worker.alive or not silent, f"{worker.id} is suspect and lost at once")
        waits = worker.waits_since is not None
        _must(not (waits and (worker.alive or worker.running)), f"{worker.id} waits and is there")
        health = worker.health
        _must(
            health.quarantined_until is None or not health.on_probation,
            f"{worker.id} is left out and on probation at once",
        )
        on_probe = health.probe is None or health.probe in worker.running
        _must(on_probe, f"{worker.id} waits for a probe that is over")
        _held_there(state, worker)
    ends = first_end_of(state)
    _must(state.first_end == ends, f"the first end is {state.first_end}, recounted {ends}")
    back = first_return_of(state)
    _must(state.first_return == back, f"the first return is {state.first_return}, not {back}")
    for path, owner in state.claims.items():
        _must(state.trials[owner].save_path == path, f"{path!r} is claimed for trial {owner}")
    from_tuner = 0
    for trial in state.trials.values():
        _trial(state, trial)
        proposed = bool(trial.outcome) or trial.state not in _REQUESTS
        from_tuner += proposed and not trial.by_hand and not _without_trial(trial)
    _must(state.submitted == from_tuner, f"{state.submitted} submitted, {from_tuner} recounted")


def _held_there(state: State, worker: Worker) -> None:
    """Check that nothing that is counted is given twice. A device that is gone may still be held; a
    worker may offer less than it did when its attempts were placed, and file or user may set
    other rules."""
    recounted = replace(worker)
    recount(state, recounted)
    _must(worker.used == recounted.used, f"{worker.id} uses {worker.used}, {recounted.used} held")
    for trial_id in worker.running:
        trial = state.trials[trial_id]
        needs = needs_of(state, trial)
        _must(len(trial.devices) in (0, needs.devices), "holds other devices than it needs", trial)


_REQUESTS = (TrialState.OPEN, TrialState.BLOCKED, TrialState.PARKED)


def _without_trial(trial: Trial) -> bool:
    return trial.outcome is Outcome.NO_TRIAL


def _collections(state: State) -> None:
    kept = {
        TrialState.OPEN: list(state.open),
        TrialState.BLOCKED: list(state.blocked),
        TrialState.PARKED: list(state.parked),
        TrialState.HELD: list(state.held),
        TrialState.QUEUED: list(state.queued),
        TrialState.RUNNING: list(state.running),
        TrialState.BACKOFF: list(state.backoff),
        TrialState.DELIVERING: list(state.delivering),
    }
    for name, ids in kept.items():
        recounted = sorted(t.id for t in state.trials.values() if t.state is name)
        _must(sorted(ids) == recounted, f"{name} holds {ids}, by the trials it is {recounted}")
    grouped = state.queue_classes
    _must(grouped == group_queue(state), f"classes {grouped}, queue {list(state.queued)}")


def _waits(state: State) -> None:
    waiting = {*state.blocked, *state.held}
    _must(set(state.waits) == waiting, f"waits of {set(state.waits)}, but {waiting} wait")
    for waiter, wait in state.waits.items():
        held = wait.mode == "held"
        _must(held == (waiter in state.held), f"{waiter} waits as {wait.mode!r}")
        nobody = wait.mode == "foreign" or (wait.mode == "version" and bool(wait.version))
        _must(bool(wait.missing) != nobody, f"{waiter} waits for nobody")
        of_store = waiter in state.version_waiters.get(wait.store, {})
        _must(of_store == (wait.mode == "version"), f"{waiter} would not hear of versions")
        for parent in wait.missing:
            _must(state.trials[parent].verdict is None, f"{waiter} waits for an open gate")
            _must(waiter in state.waiters.get(parent, {}), f"{waiter} would not be woken")
    for parent, waiters in state.waiters.items():
        for waiter in waiters:
            _must(parent in state.waits[waiter].missing, f"{waiter} does not wait for {parent}")


def _trial(state: State, trial: Trial) -> None:
    _must((trial.verdict is not None) == (trial.state is TrialState.ENDED), "gate", trial)
    path = trial.save_path
    _must(path is None or state.claims.get(path) == trial.id, "lost claim", trial)
    runs = trial.state is TrialState.RUNNING
    _must(runs == (trial.attempt_state is not None), "attempt without its state", trial)
    _must(not runs or trial.worker is not None, "attempt without a worker", trial)
    _must(runs or not trial.devices, "holds devices without an attempt", trial)
    stops = trial.attempt_state is AttemptState.STOPPING
    _must(stops or trial.stop_grace_s is None, "has a grace and is not to stop", trial)
    _must(stops or not trial.gives_way, "gives way and is not to stop", trial)
    delivering = trial.state is TrialState.DELIVERING
    _must(not delivering or trial.verdict_due is not None, "no verdict to deliver", trial)
    if trial.state not in (TrialState.DELIVERING, TrialState.ENDED):
        for store, number in (*trial.reads, *trial.heard):
            _must(there(state, store, number) is not None, f"reads what went: {store}", trial)
    if runs and trial.parent is not None:
        parent = state.trials[trial.parent]
        ready = parent.verdict is not None and parent.verdict.ok and parent.weights is not None
        _must(ready, "runs before its parent could bequeath (promise 1)", trial)


def _must(holds: bool, story: str, trial: Trial | None = None) -> None:
    if holds:
        return
    if trial is None:
        raise BrokenInvariant(story)
    raise BrokenInvariant(f"{trial!r}: {story}", trial=trial.id)
