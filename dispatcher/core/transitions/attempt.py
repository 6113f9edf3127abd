"""Reports of agents about attempts: they start, report metrics, end, and are tried again."""

from typing import Final

from dispatcher.core import events as e
from dispatcher.core.actions import Action, StartAttempt, StopAttempt
from dispatcher.core.earned_ends import note_result
from dispatcher.core.endings import NOT_ITS_FAULT, backoff_s, conclude, retries, spend_retry
from dispatcher.core.failures import take_note
from dispatcher.core.gates import deliver
from dispatcher.core.model import AttemptState, EndReason, State, Trial, TrialState, Worker
from dispatcher.core.moves import move
from dispatcher.core.quarantine import judge
from dispatcher.core.queue_classes import needs_of
from dispatcher.core.resource_match import domain_of, recount
from dispatcher.core.resources import NO_RULES
from dispatcher.core.stores import RESTORED_FROM, pinned, read_version
from dispatcher.core.transitions import Effects, quiet

#: How attempts end that somebody asked to stop for no reason of theirs.
_STOPPED = frozenset({EndReason.SHUTDOWN})
_STOPPED_AT_ENDS = _STOPPED | {EndReason.PREEMPTED}


def start_attempt(
    state: State, trial: Trial, worker: Worker, devices: tuple[str, ...], out: list[Action]
) -> None:
    """Begin the next attempt of a queued trial, on a worker where there is a place for it.

    Args:
        state: changed in place.
        trial: a queued one.
        worker: with a free slot.
        devices: the ids of those that the attempt gets; empty for none.
        out: gets the start.
    """
    move(state, trial, TrialState.RUNNING)
    trial.attempt += 1
    trial.attempt_state = AttemptState.STARTING
    trial.worker = worker.id
    trial.devices = devices
    trial.last_seq = trial.weights_seq = trial.passed_over = 0
    trial.heard = ()
    worker.running.add(trial.id)
    worker.begun += 1
    if needs_of(state, trial).counted:
        recount(state, worker)
    if worker.health.on_probation:
        worker.health.probe = trial.id
    out.append(start_of(state, trial))


def start_of(state: State, trial: Trial) -> StartAttempt:
    """The message that starts the trial's newest attempt."""
    assert trial.worker is not None
    weights = state.trials[trial.parent].weights if trial.parent is not None else None
    restore_path, restore_digest = trial.restore_path, weights.digest if weights else None
    restore_kind = weights.kind if weights else None
    named = None if restore_path is None else read_version(restore_path)
    if named is not None:  # read, too: it is there
        version = pinned(state, *named)
        restore_path, restore_digest = f"{RESTORED_FROM}/{version.path}", version.digest
        restore_kind = "bequeath"
    needs = needs_of(state, trial)
    share = 1.0
    if trial.devices:
        share = state.settings.worker_rules.get(trial.worker, NO_RULES).share_of(needs)
    return StartAttempt(
        worker=trial.worker,
        trial=trial.id,
        attempt=trial.attempt,
        parameters=trial.parameters,
        save_path=trial.save_path,
        restore_path=restore_path,
        restore_digest=restore_digest,
        restore_kind=restore_kind,
        devices=trial.devices,
        cpus=needs.cpus,
        memory_bytes=needs.memory_bytes,
        device_share=share if share < 1 else 0.0,
        versions=tuple(pinned(state, store, number) for store, number in trial.reads),
    )


def stop_of(state: State, trial: Trial) -> StopAttempt:
    """The message that ends the trial's newest attempt, with the grace that it was given when its
    end was asked for: a user's own holds however often the order is repeated."""
    assert trial.worker is not None
    usual_reason = EndReason.PREEMPTED if trial.gives_way else EndReason.SHUTDOWN
    reason = trial.kill_reason or usual_reason
    usual = state.settings.trial_stop_grace_s
    grace = usual if trial.stop_grace_s is None else trial.stop_grace_s
    return StopAttempt(trial.worker, trial.id, trial.attempt, reason, grace)


def attempt_started(state: State, event: e.AttemptStarted) -> None:
    """Note that the process is there."""
    _has_started(state, state.trials[event.trial])


def _has_started(state: State, trial: Trial) -> None:
    """Note that a reporting attempt has started: it is not asked for a second time under the same
    number."""
    if trial.attempt_state is AttemptState.STARTING:
        trial.attempt_state = AttemptState.RUNNING
    state.dirty[trial.id] = None


def metric_reported(state: State, event: e.MetricReported) -> bool:
    """Keep the newest value only; the metrics table has them all."""
    trial = state.trials[event.trial]
    if event.seq <= trial.last_seq:
        return False  # known: an agent that caught up repeats itself
    trial.last_seq = event.seq
    trial.last_intermediate = event.value
    return True


def last_metric_kept(state: State, event: e.LastMetricKept) -> None:
    """Take the metric by which the attempt is to be judged, whatever others there were."""
    state.trials[event.trial].last_intermediate = event.value


def final_reported(state: State, event: e.FinalReported) -> bool:
    """Keep the first final metric, whatever metrics came before it (a replay has none). It is held
    back until the attempt is over."""
    trial = state.trials[event.trial]
    if trial.final is not None:
        return False
    trial.final = event.value
    _has_started(state, trial)
    return True


def weights_published(state: State, event: e.WeightsPublished) -> bool:
    """Keep the digest of complete weights that the trial itself has published; the newest one is
    the one to check."""
    trial = state.trials[event.trial]
    if event.seq <= trial.weights_seq or trial.save_path is None:
        return False
    trial.weights_seq = event.seq
    trial.weights = event.weights
    trial.domain = _domain_of_worker(state, trial)
    trial.self_published = True
    _has_started(state, trial)
    return True


def attempt_ended(state: State, event: e.AttemptEnded, out: list[Action]) -> None:
    """Free the slot of an attempt whose process is gone; the trial ends or is tried again.

    Args:
        state: changed in place.
        event: its weights count if the trial has published none itself.
        out: gets the delivery, if no attempt follows.
    """
    trial = state.trials[event.trial]
    if event.weights is not None and not trial.self_published and trial.save_path is not None:
        trial.weights = event.weights
        trial.domain = _domain_of_worker(state, trial)
    attempt_over(state, trial, event.reason, out, event)


def _domain_of_worker(state: State, trial: Trial) -> str:
    """The storage domain in which the trial's newest attempt wrote its weights."""
    worker = None if trial.worker is None else state.workers.get(trial.worker)
    return "" if worker is None else domain_of(state, worker)


def attempt_over(
    state: State,
    trial: Trial,
    reason: EndReason,
    out: list[Action],
    event: e.AttemptEnded | None = None,
) -> None:
    """Retry, or conclude by the table of endings. A failed attempt that will be tried again
    releases nobody.

    Args:
        state: changed in place.
        trial: a running one.
        reason: how the attempt ended.
        out: gets the delivery, if no attempt follows, and reports about the worker.
        event: the end as its agent reported it; None if no agent did.
    """
    assert trial.worker is not None
    worker = state.workers.get(trial.worker)
    if worker is not None:
        worker.running.discard(trial.id)
        if needs_of(state, trial).counted:
            recount(state, worker)
        judge(state, worker, trial, reason, out)
    trial.attempt_state = trial.stop_grace_s = None
    trial.gives_way = False
    trial.devices = ()
    stopped = _STOPPED_AT_ENDS if state.settings.hand_over_s else _STOPPED
    if trial.kill_reason is not None and (reason in stopped or reason is EndReason.LOST):
        reason = trial.kill_reason  # it was to end, and end it did
    if reason in stopped and event is not None and _was_through(state, trial, event):
        reason = EndReason.FINISHED
    ending = None
    if not retries(trial, reason, state.settings):
        ending = conclude(trial, reason, state.settings)
    # Known of attempts that run, and of no others: a replay, which has no metrics, knows as much.
    trial.last_seq, trial.last_intermediate = 0, None
    if ending is None:
        _retry(state, trial, reason)
        return
    trial.outcome = ending.outcome
    trial.success = ending.success
    trial.result = ending.value
    trial.verdict_due = ending.verdict
    trial.refusal = ending.refusal
    take_note(state, trial, ending, reason, event)
    note_result(state, trial)
    deliver(state, trial, out)


def _was_through(state: State, trial: Trial, event: e.AttemptEnded) -> bool:
    """Whether the request to stop came to a trial that had done all it was to do."""
    complete = trial.final is not None and event.exit_code == 0
    return state.settings.through_when_stopped and complete


def _retry(state: State, trial: Trial, reason: EndReason) -> None:
    trial.weights = None
    trial.domain = ""
    trial.self_published = False
    if reason is EndReason.SHUTDOWN:
        trial.worker = None
        move(state, trial, TrialState.QUEUED)
        return
    trial.failed_on = None if reason in NOT_ITS_FAULT else trial.worker
    trial.worker = None
    spend_retry(trial, reason, state.settings)
    pause_s = backoff_s(trial, reason, state.settings)
    move(state, trial, TrialState.BACKOFF, due=state.now + pause_s)


EFFECTS: Final[Effects] = {
    e.AttemptStarted: quiet(attempt_started),
    e.LastMetricKept: quiet(last_metric_kept),
    e.FinalReported: quiet(final_reported),
    e.WeightsPublished: quiet(weights_published),
    e.AttemptEnded: attempt_ended,
}
