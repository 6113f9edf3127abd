"""The one door through which the state changes."""

from typing import NamedTuple, assert_never

from dispatcher.core import events as e
from dispatcher.core import table
from dispatcher.core.actions import (
    Action,
    LaunchTuner,
    LaunchWorker,
    OpenRequest,
    StopAttempt,
    TellSearchSpace,
)
from dispatcher.core.coupling import settle
from dispatcher.core.gates import delivery_of
from dispatcher.core.model import (
    OVER,
    AttemptState,
    EndReason,
    Phase,
    State,
    TrialState,
)
from dispatcher.core.settings import HOST_RESTARTS_IN_A_ROW, Settings
from dispatcher.core.transitions import attempt, request, user
from dispatcher.core.transitions.attempt import start_of
from dispatcher.errors import BrokenInvariant, InvalidTransition


class Step(NamedTuple):
    """What an event led to. ``counted`` is false for words that are recorded and no more."""

    actions: list[Action]
    counted: bool


def new_state(settings: Settings) -> State:
    """The state before the first event."""
    return State(settings)


def apply(state: State, event: e.Event, at: float) -> Step:
    """Take a fact in: change the state, say what follows.

    Args:
        state: changed in place, unless the event is refused or late.
        event: what happened.
        at: when, in seconds since the epoch (UTC). Time enters the core here only; a
            clock that was set back is taken as standing still.

    Raises:
        InvalidTransition: the event is not legal in this state; nothing has changed.
    """
    if not _counts(state, event):
        return Step([], False)
    state.last_event_at = state.now
    state.now = max(at, state.now)
    out: list[Action] = []
    counted = _effect(state, event, out)
    if not isinstance(event, e.MetricReported):
        settle(state, out)
    return Step(out, counted)


def _counts(state: State, event: e.Event) -> bool:
    """Legality by the table: true for an effect, false for late words."""
    legal = table.LEGAL.get(type(event))
    if legal is None:
        return True
    trial = state.trials.get(event.trial)  # type: ignore[union-attr]
    if trial is None:
        raise InvalidTransition(f"{type(event).__name__} names trial {event.trial}, which is not")  # type: ignore[union-attr]
    if isinstance(event, table.ATTEMPT_EVENTS) and event.attempt != trial.attempt:
        return False  # promise 3: one attempt is believed
    if trial.state in legal:
        return True
    if trial.state in table.LATE[type(event)]:
        return False
    raise InvalidTransition(
        f"trial {trial.id} cannot take {type(event).__name__} while {trial.state.name}"
    )


def _effect(state: State, event: e.Event, out: list[Action]) -> bool:
    counted = True
    match event:
        case e.MetricReported():
            counted = attempt.metric_reported(state, event)
        case e.FinalReported():
            counted = attempt.final_reported(state, event)
        case e.WeightsPublished():
            counted = attempt.weights_published(state, event)
        case e.AttemptStarted():
            attempt.attempt_started(state, event)
        case e.AttemptEnded():
            attempt.attempt_ended(state, event, out)
        case e.Proposed():
            request.proposed(state, event, out)
        case e.WaitStarted():
            request.wait_started(state, event, out)
        case e.WaitGivenUp():
            counted = request.wait_given_up(state, event)
        case e.ForeignWaitSeen():
            request.foreign_wait_seen(state, event)
        case e.ForeignWaitOver():
            counted = request.foreign_wait_over(state, event)
        case e.RequestFailed():
            request.request_failed(state, event, out)
        case e.ResultDelivered():
            request.result_delivered(state, event, out)
        case e.EndDelivered():
            request.end_delivered(state, event, out)
        case e.TunerHostReady():
            state.host_ready = True
            out.extend(_outstanding_tuner(state))
        case e.TunerHostLost():
            _tuner_host_lost(state, event, out)
        case e.WorkerJoined():
            attempt.worker_joined(state, event, out)
        case e.WorkerLost():
            attempt.worker_lost(state, event, out)
        case e.TrialSubmitted():
            user.trial_submitted(state, event, out)
        case e.TrialStopRequested():
            user.trial_stop_requested(state, event, out)
        case e.StopRequested():
            user.stop_requested(state, event, out)
        case e.HeadStarted():
            user.head_started(state, event)
        case e.SettingsUpdated():
            state.settings = event.settings
        case e.SearchSpaceUpdated():
            out.append(TellSearchSpace(event.search_space))
        case e.ExperimentCreated():
            state.settings = event.settings
        case e.Tick() | e.StacksReported() | e.TunerStateTaken():
            pass
        case _:
            assert_never(event)
    return counted


def _tuner_host_lost(state: State, event: e.TunerHostLost, out: list[Action]) -> None:
    user.host_gone(state)
    state.host_restarts += 1
    if state.phase in OVER:
        return
    if event.fatal or state.host_restarts > HOST_RESTARTS_IN_A_ROW:
        if state.phase is Phase.RUNNING:
            state.phase = Phase.DRAINING
            state.phase_reason = event.reason
        state.over_phase = Phase.FAILED
    else:
        out.append(LaunchTuner())


def outstanding(state: State) -> list[Action]:
    """What should be under way in this state: restart is to replay, then to carry this out."""
    out: list[Action] = []
    out.extend(_outstanding_tuner(state) if state.host_ready else [LaunchTuner()])
    for worker in state.workers.values():
        if not worker.alive:
            out.append(LaunchWorker(worker.id))
            continue
        for trial_id in sorted(worker.running):
            trial = state.trials[trial_id]
            if trial.attempt_state is AttemptState.STARTING:
                out.append(start_of(state, trial))
            elif trial.attempt_state is AttemptState.STOPPING:
                reason = trial.kill_reason or EndReason.SHUTDOWN
                grace = state.settings.trial_stop_grace_s
                out.append(StopAttempt(worker.id, trial.id, trial.attempt, reason, grace))
    return out


def _outstanding_tuner(state: State) -> list[Action]:
    out: list[Action] = [delivery_of(state.trials[t]) for t in state.delivering]
    if state.phase is Phase.RUNNING:
        for trial_id in state.open:
            state.trials[trial_id].asked += 1
            out.append(OpenRequest(trial_id))
    return out


def next_deadline(state: State) -> float | None:
    """When a :class:`~dispatcher.core.events.Tick` is due, in seconds since the epoch."""
    due: list[float] = list(state.backoff.values())
    if state.phase is Phase.RUNNING:
        if state.fail_at is not None:
            due.append(state.fail_at)
        elif state.quiet_since is not None:
            due.append(state.quiet_since + state.settings.stall_timeout_s)
        if state.settings.max_duration_s is not None and state.started_at is not None:
            left = state.settings.max_duration_s - state.active_s
            due.append(state.started_at + left)
    return min(due, default=None)


def check(state: State) -> None:
    """Recount everything that is kept twice. Raises :class:`BrokenInvariant`."""
    from_trials: dict[TrialState, set[int]] = {s: set() for s in TrialState}
    for trial in state.trials.values():
        from_trials[trial.state].add(trial.id)
    kept = {
        TrialState.OPEN: set(state.open),
        TrialState.BLOCKED: set(state.blocked),
        TrialState.PARKED: set(state.parked),
        TrialState.HELD: set(state.held),
        TrialState.QUEUED: set(state.queued),
        TrialState.RUNNING: set(state.running),
        TrialState.BACKOFF: set(state.backoff),
        TrialState.DELIVERING: set(state.delivering),
    }
    for name, ids in kept.items():
        _must(ids == from_trials[name], f"{name} holds {ids}, the trials say {from_trials[name]}")
    _must(len(state.queued) == len(set(state.queued)), "a trial is queued twice")
    on_workers = {t for w in state.workers.values() for t in w.running}
    _must(on_workers == set(state.running), "workers and running trials differ")
    _must(len(state.running) <= max(state.settings.slots, len(on_workers)), "too many slots")
    _must(
        set(state.waits) == set(state.blocked) | set(state.held),
        f"waits {set(state.waits)} are not the blocked and held trials",
    )
    for waiter, wait in state.waits.items():
        for parent in wait.missing:
            _must(state.trials[parent].verdict is None, f"{waiter} waits for an open gate")
            _must(waiter in state.waiters.get(parent, {}), f"{waiter} would not be woken")
    for trial in state.trials.values():
        _must(
            (trial.verdict is not None) == (trial.state is TrialState.ENDED),
            f"gate of {trial!r} does not fit its state",
        )
        if trial.save_path is not None:
            _must(state.claims.get(trial.save_path) == trial.id, f"{trial!r} lost its claim")


def _must(holds: bool, story: str) -> None:
    if not holds:
        raise BrokenInvariant(story)
