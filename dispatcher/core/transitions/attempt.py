"""What agents say: workers that come and go, attempts and their reports."""

from dispatcher.core import events as e
from dispatcher.core.actions import Action, LaunchWorker, StartAttempt, StopAttempt
from dispatcher.core.endings import backoff_s, conclude, retries
from dispatcher.core.gates import deliver
from dispatcher.core.model import AttemptState, EndReason, Phase, State, Trial, TrialState, Worker
from dispatcher.core.moves import move
from dispatcher.core.settings import WORKER_LOSSES_IN_A_ROW


def worker_joined(state: State, event: e.WorkerJoined, out: list[Action]) -> None:
    """An agent said what it holds: what else we believed to be there is lost, what we no
    longer want is stopped, what we asked for and it never got is asked for again."""
    worker = state.workers.get(event.worker)
    if worker is None:
        worker = state.workers[event.worker] = Worker(event.worker, event.slots)
    worker.slots = event.slots
    worker.alive = True
    worker.losses = 0
    held = dict(event.holds)
    for trial_id in list(worker.running):
        trial = state.trials[trial_id]
        if held.get(trial_id) == trial.attempt:
            continue
        if trial.attempt_state is AttemptState.STARTING:
            out.append(start_of(state, trial))
        else:
            attempt_over(state, trial, EndReason.LOST, out)
    for trial_id, number in event.holds:
        held_trial = state.trials.get(trial_id)
        if (
            held_trial is None
            or held_trial.state is not TrialState.RUNNING
            or held_trial.attempt != number
        ):
            out.append(StopAttempt(event.worker, trial_id, number, EndReason.SHUTDOWN, 0.0))


def worker_lost(state: State, event: e.WorkerLost, out: list[Action]) -> None:
    """All its attempts are lost; none of that counts against the trials."""
    worker = state.workers.get(event.worker)
    if worker is None:
        worker = state.workers[event.worker] = Worker(event.worker, 0)
    worker.alive = False
    worker.losses += 1
    for trial_id in list(worker.running):
        attempt_over(state, state.trials[trial_id], EndReason.LOST, out)
    if state.phase not in (Phase.RUNNING, Phase.DRAINING):
        return
    if worker.losses >= WORKER_LOSSES_IN_A_ROW:
        state.phase = Phase.DRAINING
        state.over_phase = Phase.FAILED
        state.phase_reason = f"worker {worker.id} cannot be kept alive: {event.reason}"
    else:
        out.append(LaunchWorker(event.worker))


def start_attempt(state: State, trial: Trial, worker: Worker, out: list[Action]) -> None:
    """The next attempt of a queued trial, on a worker with a free slot."""
    move(state, trial, TrialState.RUNNING)
    trial.attempt += 1
    trial.attempt_state = AttemptState.STARTING
    trial.worker = worker.id
    trial.last_seq = 0
    trial.kill_reason = None
    worker.running.add(trial.id)
    out.append(start_of(state, trial))


def start_of(state: State, trial: Trial) -> StartAttempt:
    """The message that starts the trial's newest attempt."""
    assert trial.worker is not None
    weights = state.trials[trial.parent].weights if trial.parent is not None else None
    return StartAttempt(
        worker=trial.worker,
        trial=trial.id,
        attempt=trial.attempt,
        parameters=trial.parameters,
        save_path=trial.save_path,
        restore_path=trial.restore_path,
        restore_digest=weights.digest if weights else None,
        restore_kind=weights.kind if weights else None,
    )


def attempt_started(state: State, event: e.AttemptStarted) -> None:
    """The process is there."""
    trial = state.trials[event.trial]
    if trial.attempt_state is AttemptState.STARTING:
        trial.attempt_state = AttemptState.RUNNING
        state.dirty[trial.id] = None


def metric_reported(state: State, event: e.MetricReported) -> bool:
    """Only the newest value is kept here; the metrics table has them all."""
    return _take(state.trials[event.trial], event.seq, last=event.value)


def final_reported(state: State, event: e.FinalReported) -> bool:
    """The first final counts; it is held back until the attempt is over."""
    trial = state.trials[event.trial]
    if not _take(trial, event.seq) or trial.final is not None:
        return False
    trial.final = event.value
    state.dirty[trial.id] = None
    return True


def weights_published(state: State, event: e.WeightsPublished) -> bool:
    """Complete weights, told by the trial itself; the newest digest is the one to check."""
    trial = state.trials[event.trial]
    if not _take(trial, event.seq) or trial.save_path is None:
        return False
    trial.weights = event.weights
    trial.self_published = True
    state.dirty[trial.id] = None
    return True


def _take(trial: Trial, seq: int, last: str | None = None) -> bool:
    if seq <= trial.last_seq:
        return False  # said before: an agent that caught up repeats itself
    trial.last_seq = seq
    if last is not None:
        trial.last_intermediate = last
    return True


def attempt_ended(state: State, event: e.AttemptEnded, out: list[Action]) -> None:
    """The process is gone: its slot is free, and the trial ends or is tried again."""
    trial = state.trials[event.trial]
    if event.weights is not None and not trial.self_published and trial.save_path is not None:
        trial.weights = event.weights
    attempt_over(state, trial, event.reason, out)


def attempt_over(state: State, trial: Trial, reason: EndReason, out: list[Action]) -> None:
    """Retry, or conclude by the table of endings. A failed attempt that will be tried again
    releases nobody."""
    assert trial.worker is not None
    worker = state.workers.get(trial.worker)
    if worker is not None:
        worker.running.discard(trial.id)
    trial.attempt_state = None
    if trial.kill_reason is EndReason.KILLED and reason is EndReason.LOST:
        reason = EndReason.KILLED  # the user wanted it gone, and gone it is
    if retries(trial, reason, state.settings):
        _retry(state, trial, reason)
        return
    ending = conclude(trial, reason, state.settings)
    trial.outcome = ending.outcome
    trial.success = ending.success
    trial.told = ending.value
    trial.verdict_due = ending.verdict
    deliver(state, trial, out)


def _retry(state: State, trial: Trial, reason: EndReason) -> None:
    trial.weights = None
    trial.self_published = False
    trial.last_intermediate = None
    trial.worker = None
    if reason is EndReason.SHUTDOWN:
        move(state, trial, TrialState.QUEUED)
        return
    if reason is EndReason.LOST:
        trial.losses += 1
    else:
        trial.failures += 1
    move(state, trial, TrialState.BACKOFF, due=state.now + backoff_s(trial, state.settings))
