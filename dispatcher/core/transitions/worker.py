"""Workers that come and go, fall silent and answer again."""

from dataclasses import replace
from typing import Final

from dispatcher.core import events as e
from dispatcher.core.actions import Action, LaunchWorker, ReportWorker, StopAttempt
from dispatcher.core.model import AttemptState, EndReason, Phase, State, TrialState, Worker
from dispatcher.core.place_ends import note_ends
from dispatcher.core.resource_match import may_begin, most, recount
from dispatcher.core.resources import Offer
from dispatcher.core.settings import WORKER_LOSSES_IN_A_ROW
from dispatcher.core.transitions import Effects, quiet
from dispatcher.core.transitions.attempt import attempt_over, start_of, stop_of
from dispatcher.core.trouble import is_given_up, waits_text


def worker_joined(state: State, event: e.WorkerJoined, out: list[Action]) -> None:
    """Compare what a worker holds with what we believe: other attempts that we believed to be there
    are lost; those that we no longer want are stopped; those that we asked for and that never
    began are asked for again, or placed anew if nothing may run any more on the devices that
    they were given.

    Args:
        state: changed in place.
        event: ``holds`` are the attempts that the worker has.
        out: gets starts and stops, and deliveries of trials whose attempts are lost.
    """
    worker = state.workers.get(event.worker)
    if worker is None:
        worker = state.workers[event.worker] = Worker(event.worker, event.slots)
    worker.slots = event.slots
    follow_slots(state, worker)
    worker.alive = True
    worker.losses = 0
    worker.trouble = ""
    worker.excluded = False
    worker.suspect_since = None
    _waits_no_more(worker)
    worker.domain = event.domain
    _takes_stock(state, worker, event.offer)
    held = set(event.holds)
    for trial_id in sorted(worker.running):
        trial = state.trials[trial_id]
        if (trial_id, trial.attempt) in held:
            if trial.attempt_state is AttemptState.STOPPING:
                out.append(stop_of(state, trial))  # it may not have got the message
        elif trial.attempt_state is not AttemptState.STARTING:
            attempt_over(state, trial, EndReason.LOST, out)
        elif may_begin(trial, worker) or not state.settings.placed_anew:
            out.append(start_of(state, trial))
        else:  # it never began: nothing is lost, and nothing counts against it
            attempt_over(state, trial, EndReason.SHUTDOWN, out)
    for trial_id, number in event.holds:
        held_trial = state.trials.get(trial_id)
        if (
            held_trial is None
            or held_trial.state is not TrialState.RUNNING
            or held_trial.attempt != number
        ):
            out.append(StopAttempt(event.worker, trial_id, number, EndReason.SHUTDOWN, 0.0))


def follow_slots(state: State, worker: Worker) -> None:
    """Give a worker as many slots as the experiment has, if the file does not say how many trials
    run there at once. A user may change that number while the agent knows only the one that it
    was started with. No slots stay none: an agent of another version takes nothing new."""
    if worker.slots and worker.id in state.settings.slots_follow:
        worker.slots = state.settings.slots


def worker_offers(state: State, event: e.WorkerOffers) -> bool:
    """Take in a changed offer. Late if the worker is not there."""
    worker = state.workers.get(event.worker)
    if worker is None or not worker.alive:
        return False
    _takes_stock(state, worker, event.offer)
    return True


def _takes_stock(state: State, worker: Worker, offer: Offer | None) -> None:
    state.unjudged = True
    worker.cached = frozenset() if offer is None else frozenset(offer.cached)
    worker.offer = None if offer is None else replace(offer, cached=())
    worker.known = most(worker.known, worker.offer)
    worker.closing = False  # until it is seen that its place ends soon
    note_ends(state)
    recount(state, worker)


def worker_lost(state: State, event: e.WorkerLost, out: list[Action]) -> None:
    """Count a worker's attempts as lost; none of that counts against the trials. A worker that was
    lost too often is given up, and with the last one the experiment.

    Args:
        state: changed in place.
        event: why, and whether it can be had again.
        out: gets a report, the launch of a new agent, and deliveries of trials that are not tried
            again.
    """
    worker = state.workers.get(event.worker)
    if worker is None:
        worker = state.workers[event.worker] = Worker(event.worker, 0)
    state.unjudged = True
    worker.alive = False
    worker.suspect_since = None
    _waits_no_more(worker)
    note_ends(state)
    worker.excluded = event.kept_out
    if not (event.kept_out or event.planned):
        worker.losses += 1
    if event.hopeless:
        worker.losses = max(worker.losses, WORKER_LOSSES_IN_A_ROW)
    worker.trouble = event.reason
    reason = EndReason.PREEMPTED if event.planned else EndReason.LOST
    if event.ends_as is not None and len(worker.running) == 1:
        reason = event.ends_as
    _end_attempts(state, worker, reason, out)
    worker.begun = 0
    if state.phase not in (Phase.RUNNING, Phase.DRAINING):
        return
    if event.kept_out:
        out.append(ReportWorker(worker.id, f"worker {worker.id} takes no trials: {event.reason}"))
        return
    given_up = [each for each in state.workers.values() if is_given_up(each)]
    if len(given_up) >= state.settings.workers:
        state.phase = Phase.DRAINING
        state.over_phase = Phase.FAILED
        state.phase_reason = "; ".join(
            f"worker {each.id} cannot be kept alive: {each.trouble}" for each in given_up
        )
        return
    how = "has lost its place" if event.planned else "is lost"
    out.append(ReportWorker(worker.id, f"worker {worker.id} {how}: {event.reason}"))
    out.append(LaunchWorker(event.worker))


def worker_waits(state: State, event: e.WorkerWaits, out: list[Action]) -> None:
    """Note why a worker is not there, and since when: it is no loss, however long it takes. If a
    head before us left attempts there, they are gone with the place that it had then.

    Args:
        state: changed in place.
        event: why, and for how long already.
        out: gets a report, and deliveries of trials that are not tried again.
    """
    worker = state.workers.get(event.worker)
    if worker is None:
        worker = state.workers[event.worker] = Worker(event.worker, 0)
    worker.alive = worker.excluded = False
    note_ends(state)
    worker.suspect_since = None
    worker.waiting = event.reason
    worker.waits_since = state.now - event.waited_s
    _end_attempts(state, worker, EndReason.PREEMPTED, out)
    worker.begun = 0
    out.append(ReportWorker(worker.id, waits_text(worker, state.now)))


def _end_attempts(state: State, worker: Worker, reason: EndReason, out: list[Action]) -> None:
    """End all that ran on a worker that is gone; what was to end has ended as it was to."""
    for trial_id in sorted(worker.running):
        trial = state.trials[trial_id]
        was_to_end = trial.kill_reason is not None
        attempt_over(state, trial, EndReason.LOST if was_to_end else reason, out)


def _waits_no_more(worker: Worker) -> None:
    worker.waiting, worker.waits_since = "", None


def worker_suspect(state: State, event: e.WorkerSuspect, out: list[Action]) -> bool:
    """Put nothing new on a silent worker. Silence is no loss yet: what runs there goes on.

    Args:
        state: changed in place.
        event: for how long it has been silent.
        out: gets a report.
    """
    worker = state.workers.get(event.worker)
    if worker is None or not worker.usable:
        return False
    worker.suspect_since = state.now - event.silent_s
    text = f"worker {worker.id} has been silent for {event.silent_s:.0f} s; nothing new goes there"
    out.append(ReportWorker(worker.id, text))
    return True


def worker_heard(state: State, event: e.WorkerHeard, out: list[Action]) -> bool:
    """Trust a worker again that was only silent.

    Args:
        state: changed in place.
        event: which worker.
        out: gets a report.
    """
    worker = state.workers.get(event.worker)
    if worker is None or worker.suspect_since is None:
        return False
    worker.suspect_since = None
    out.append(ReportWorker(worker.id, f"worker {worker.id} is heard again"))
    return True


EFFECTS: Final[Effects] = {
    e.WorkerJoined: worker_joined,
    e.WorkerOffers: quiet(worker_offers),
    e.WorkerLost: worker_lost,
    e.WorkerWaits: worker_waits,
    e.WorkerSuspect: worker_suspect,
    e.WorkerHeard: worker_heard,
}
