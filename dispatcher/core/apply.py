"""Applying an event: the only way in which the state changes."""

from typing import NamedTuple, assert_never

from dispatcher.core import draining, stalls, table
from dispatcher.core import events as e
from dispatcher.core.actions import (
    Action,
    Assess,
    LaunchTuner,
    LaunchWorker,
    OpenRequest,
    TellImport,
    TellSearchSpace,
    TellVersion,
)
from dispatcher.core.coupling import settle
from dispatcher.core.gates import delivery_of
from dispatcher.core.model import OVER, AttemptState, Phase, State
from dispatcher.core.moves import asks
from dispatcher.core.settings import HOST_RESTARTS_IN_A_ROW, Settings
from dispatcher.core.transitions import attempt, disk, request, store, user, weights, worker
from dispatcher.core.transitions.attempt import start_of, stop_of
from dispatcher.errors import InvalidTransition


class Step(NamedTuple):
    """The result of an event. ``counted`` is false for an event that is recorded without effect."""

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
    if isinstance(event, e.NOT_JOURNALLED):
        return _beside_the_journal(state, event)
    state.last_event_at = state.now
    state.now = max(at, state.now)
    if not isinstance(event, table.FREES_NOTHING):
        state.all_wait = False
    out: list[Action] = []
    counted = _effect(state, event, out)
    settle(state, out)
    return Step(out, counted)


def _beside_the_journal(state: State, event: e.Event) -> Step:
    """Take in an event that the journal does not keep. It may change nothing that a replay must
    find: neither the time nor anything that follows from it. Only metrics leave a trace (the
    newest value)."""
    if not isinstance(event, e.MetricReported):
        return Step([], True)
    if not attempt.metric_reported(state, event):
        return Step([], False)
    if state.settings.assess:
        return Step([Assess(event.trial, event.value, event.attempt, event.seq)], True)
    return Step([], True)


def _counts(state: State, event: e.Event) -> bool:
    """Legality by the table: true for an effect, false for an event that comes late."""
    legal = table.LEGAL.get(type(event))
    if legal is None:
        return True
    trial = state.trials.get(event.trial)  # type: ignore[union-attr]
    if trial is None:
        raise InvalidTransition(f"{type(event).__name__} names trial {event.trial}, which is not")  # type: ignore[union-attr]
    if isinstance(event, table.ATTEMPT_EVENTS) and event.attempt != trial.attempt:
        return False  # promise 3: one attempt is believed
    if isinstance(event, table.TUNER_EVENTS) and not state.host_ready:
        return False
    if trial.state in legal:
        objection = table.objection(trial, event)
        if objection:
            raise InvalidTransition(
                f"trial {trial.id} cannot take {type(event).__name__}: {objection}"
            )
        return True
    if table.comes_of_a_kill(trial, event):
        return True
    if trial.state in table.LATE[type(event)]:
        return False
    raise InvalidTransition(
        f"trial {trial.id} cannot take {type(event).__name__} while {trial.state.name}"
    )


def _effect(state: State, event: e.Event, out: list[Action]) -> bool:
    counted = True
    match event:
        case e.LastMetricKept():
            state.trials[event.trial].last_intermediate = event.value
        case e.FinalReported():
            counted = attempt.final_reported(state, event)
        case e.WeightsPublished():
            counted = attempt.weights_published(state, event)
        case e.VersionOffered():
            counted = store.version_offered(state, event, out)
        case e.VersionsHeld():
            counted = store.versions_held(state, event, out)
        case e.StoresReviewed():
            store.stores_reviewed(state, event, out)
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
        case e.DeliveryStandsStill():
            request.delivery_stands_still(state, event)
        case e.EndDelivered():
            request.end_delivered(state, event, out)
        case e.TunerHostReady():
            counted = _tuner_host_ready(state, out)
        case e.TunerHostLost():
            _tuner_host_lost(state, event, out)
        case e.WorkerJoined():
            worker.worker_joined(state, event, out)
        case e.WorkerOffers():
            counted = worker.worker_offers(state, event)
        case e.WorkerLost():
            worker.worker_lost(state, event, out)
        case e.WorkerWaits():
            worker.worker_waits(state, event, out)
        case e.WorkerSuspect():
            counted = worker.worker_suspect(state, event, out)
        case e.WorkerHeard():
            counted = worker.worker_heard(state, event, out)
        case e.RemovalAnnounced():
            weights.removal_announced(state, event, out)
        case e.TrialSubmitted():
            user.trial_submitted(state, event, out)
        case e.TrialStopRequested():
            user.trial_stop_requested(state, event, out)
        case e.StopRequested():
            user.stop_requested(state, event, out)
        case e.HeadStarted():
            user.head_started(state, event)
        case e.SettingsUpdated():
            user.settings_updated(state, event)
        case e.SearchSpaceUpdated():
            state.search_space = event.search_space
            if state.host_ready:
                out.append(TellSearchSpace(event.search_space))
        case e.DataImported():
            user.data_imported(state, event, out)
        case e.ImportDelivered():
            counted = user.import_delivered(state, event, out)
        case e.ExperimentCreated():
            state.settings = event.settings
        case e.DiskLow():
            disk.disk_low(state, event, out)
        case e.DiskRecovered():
            counted = disk.disk_recovered(state, event, out)
        case e.Tick():
            pass
        case e.MetricReported() | e.StacksReported() | e.TunerStateTaken():
            raise AssertionError("answered beside the journal")
        case _:
            assert_never(event)
    return counted


def _tuner_host_ready(state: State, out: list[Action]) -> bool:
    """Open all requests and repeat all deliveries in the new process. A second report of the same
    process changes nothing: it would deliver twice."""
    if state.host_ready:
        return False
    state.host_ready = True
    for action in _outstanding_tuner(state):
        if isinstance(action, OpenRequest):
            asks(state, state.trials[action.trial])
        out.append(action)
    return True


def _tuner_host_lost(state: State, event: e.TunerHostLost, out: list[Action]) -> None:
    user.host_gone(state)
    state.host_restarts += 1
    if state.phase in OVER:
        return
    if event.fatal or state.host_restarts > HOST_RESTARTS_IN_A_ROW:
        state.host_restarts = max(state.host_restarts, HOST_RESTARTS_IN_A_ROW + 1)  # no more
        if state.phase is Phase.RUNNING:
            state.phase = Phase.DRAINING
            state.phase_reason = event.reason
        state.over_phase = Phase.FAILED
    else:
        out.append(LaunchTuner())


def outstanding(state: State) -> list[Action]:
    """The actions that should be under way in this state: restart is to replay, then to carry these
    out."""
    out: list[Action] = []
    out.extend(_outstanding_tuner(state) if state.host_ready else [LaunchTuner()])
    for known in state.workers.values():
        if not known.alive:
            out.append(LaunchWorker(known.id))
            continue
        for trial_id in sorted(known.running):
            trial = state.trials[trial_id]
            if trial.attempt_state is AttemptState.STARTING:
                out.append(start_of(state, trial))
            elif trial.attempt_state is AttemptState.STOPPING:
                out.append(stop_of(state, trial))
    return out


def _outstanding_tuner(state: State) -> list[Action]:
    out: list[Action] = []
    if state.search_space is not None:
        out.append(TellSearchSpace(state.search_space))
    out.extend(TellVersion(name, len(versions)) for name, versions in state.stores.items())
    out.extend(TellImport(number, data) for number, data in state.imports.items())
    out.extend(delivery_of(state.trials[t]) for t in state.delivering)
    if state.phase is Phase.RUNNING:
        out.extend(OpenRequest(trial_id) for trial_id in state.open)
    return out


def next_deadline(state: State) -> float | None:
    """When a :class:`~dispatcher.core.events.Tick` is due, in seconds since the epoch."""
    due: list[float] = []
    if state.phase is Phase.DRAINING:
        return state.fail_at if state.fail_at is not None else draining.due(state)
    if state.phase is Phase.RUNNING:
        due.extend(state.backoff.values())  # no attempt follows in any other phase
        stall = stalls.due(state)
        if stall is not None:
            due.append(stall)
        if state.settings.max_duration_s is not None and state.started_at is not None:
            left = state.settings.max_duration_s - state.active_s
            due.append(state.started_at + left)
        ends = (worker.health.quarantined_until for worker in state.workers.values())
        due.extend(end for end in ends if end is not None)
    return min(due, default=None)
