"""Requests of users: trials by hand, trials to be killed, the end of it all, other limits."""

from typing import Final

from dispatcher.core import events as e
from dispatcher.core import waits
from dispatcher.core.actions import (
    Action,
    CancelRequest,
    ReportTunerError,
    TellImport,
    TellSearchSpace,
)
from dispatcher.core.earned_ends import forget_results, spend
from dispatcher.core.gates import end_without_trial, fail_unstarted
from dispatcher.core.model import (
    OVER,
    AttemptState,
    EndReason,
    FailReason,
    Outcome,
    Phase,
    State,
    Trial,
    TrialState,
    WorkerHealth,
)
from dispatcher.core.moves import new_trial
from dispatcher.core.resource_match import recount
from dispatcher.core.settings import Settings
from dispatcher.core.transitions import Effects, quiet
from dispatcher.core.transitions.attempt import stop_of
from dispatcher.core.transitions.request import admit
from dispatcher.core.transitions.tuner_host import host_gone
from dispatcher.core.transitions.worker import follow_slots


def trial_submitted(state: State, event: e.TrialSubmitted, out: list[Action]) -> None:
    """Give parameters by hand an id like all others; they may be parents.

    Args:
        state: changed in place.
        event: the parameters.
        out: gets the error if they are refused.
    """
    trial = new_trial(state, to=TrialState.OPEN, by_hand=True)
    refusal = admit(state, trial, event, out)
    if refusal is not None:
        out.append(ReportTunerError(trial.id, "trial submit", refusal))
        end_without_trial(state, trial, out)


def trial_stop_requested(state: State, event: e.TrialStopRequested, out: list[Action]) -> None:
    """Kill a trial in whatever state it is.

    Args:
        state: changed in place.
        event: ``reason`` tells a user's request from an assessor's.
        out: gets the stop of its attempt, or the end of its request, or its delivery.
    """
    trial = state.trials[event.trial]
    if trial.state is TrialState.RUNNING:
        trial.kill_reason = trial.kill_reason or event.reason
        state.dirty[trial.id] = None
        if trial.attempt_state is not AttemptState.STOPPING:  # else this is why, from now on
            stop_attempt(state, trial, None, out)
    elif trial.state in (TrialState.OPEN, TrialState.BLOCKED, TrialState.PARKED):
        out.append(CancelRequest(trial.id))
        if state.settings.end_dropped and trial.state is not TrialState.PARKED:
            trial.kill_reason = event.reason  # its thread may return parameters all the same
        end_without_trial(state, trial, out)
    else:  # held, queued or waiting for its next attempt
        waits.erase(state, trial.id)
        outcome, reason = Outcome.KILLED, FailReason.KILLED
        if event.reason is EndReason.STOPPED_EARLY:
            outcome, reason = Outcome.STOPPED_EARLY, FailReason.STOPPED_EARLY
        fail_unstarted(state, trial, reason, (), out, outcome)


def stop_attempt(state: State, trial: Trial, grace_s: float | None, out: list[Action]) -> None:
    """Ask for the end of a running attempt. What its agent has reported of it does not change by
    that.

    Args:
        state: changed in place.
        trial: a running one.
        grace_s: seconds between SIGTERM and SIGKILL; None: the usual ones.
        out: gets the stop.
    """
    trial.attempt_state = AttemptState.STOPPING
    trial.stop_grace_s = grace_s
    state.dirty[trial.id] = None
    out.append(stop_of(state, trial))


def stop_requested(state: State, event: e.StopRequested, out: list[Action]) -> None:
    """Drain or stop. A stop after a drain goes further; nothing goes back.

    Args:
        state: changed in place.
        event: how, and why.
        out: gets the stop of each running attempt, if it is not a drain.
    """
    if state.phase in OVER:
        return
    if state.phase is Phase.RUNNING:
        state.over_phase = Phase.STOPPED
        state.phase_reason = event.reason
    if event.kind is e.StopKind.NOW:
        state.phase = Phase.STOPPING
        for trial_id in state.running:
            trial = state.trials[trial_id]
            if trial.attempt_state is not AttemptState.STOPPING or event.grace_s is not None:
                stop_attempt(state, trial, event.grace_s, out)
    elif state.phase is Phase.RUNNING:
        state.phase = Phase.DRAINING


def data_imported(state: State, event: e.DataImported, out: list[Action]) -> None:
    """Keep the data until the tuner has taken it: a host that dies before that gets it again.

    Args:
        state: changed in place.
        event: results of another experiment.
        out: gets the import, if the tuner's process is there.
    """
    state.imports[state.imported] = event.data
    if state.host_ready:
        out.append(TellImport(state.imported, event.data))
    state.imported += 1


def import_delivered(state: State, event: e.ImportDelivered, out: list[Action]) -> bool:
    """Forget data that the tuner has taken, once. A report of a process that is gone does not
    count: its successor gets the data again.

    Args:
        state: changed in place.
        event: ``error`` is the tuner's traceback, if it raised.
        out: gets that error.
    """
    if not state.host_ready or state.imports.pop(event.number, None) is None:
        return False
    if event.error:
        out.append(ReportTunerError(None, "import_data", event.error))
    return True


def head_started(state: State, event: e.HeadStarted) -> None:
    """Begin under a new head: peers of the old one are not known yet; all requests are asked again.

    Changed settings come with it, not in an event before it: no rule is to be applied to a state
    that nobody leads, and the time until now is not the old head's.
    """
    spend(state, state.last_event_at)  # not the time in which nobody led
    if state.started_at is not None:
        state.active_s += max(0.0, state.last_event_at - state.started_at)
    state.started_at = state.now
    state.epoch = event.epoch
    state.phase = Phase.RUNNING
    state.over_phase = Phase.STOPPED
    state.phase_reason = ""
    state.tuner_done = False
    state.tuner_errors_in_a_row = 0
    state.abandoned_in_a_row = 0
    state.host_restarts = 0
    state.quiet_since = state.fail_at = None
    state.deadlock_named = False
    state.failures.in_a_row = 0
    state.failures.tripped = False
    state.low_disks.clear()  # it looks for itself
    host_gone(state)
    if event.settings is not None:
        state.settings = event.settings
        state.unjudged = True
    for worker in state.workers.values():
        worker.alive = False
        worker.suspect_since = worker.waits_since = None
        worker.waiting = ""
        worker.losses = 0
        worker.health = WorkerHealth()
        worker.offer = worker.known = None  # each says anew what it has
        worker.closing = False
        worker.cached = frozenset()
        recount(state, worker)
    state.first_end = state.first_return = None
    for trial_id in state.running:
        trial = state.trials[trial_id]
        # What was stopped with the experiment goes on with it; what was killed is not forgiven.
        if trial.attempt_state is AttemptState.STOPPING and trial.kill_reason is None:
            trial.attempt_state = AttemptState.RUNNING
            trial.stop_grace_s = None
            trial.gives_way = False


def settings_updated(state: State, event: e.SettingsUpdated) -> None:
    """Take in other limits or other rules: resources that workers hold are counted by them."""
    before, state.settings = state.settings, event.settings
    if _ends_look_at(before) != _ends_look_at(state.settings):
        forget_results(state)
    state.unjudged = True
    after = state.settings
    others = (before.needs, before.worker_rules) != (after.needs, after.worker_rules)
    for worker in state.workers.values():
        follow_slots(state, worker)
        if others:  # a study has one slot more for each trial that is asked for
            recount(state, worker)


def _ends_look_at(settings: Settings) -> tuple[str, bool | None]:
    return settings.end_objective, settings.maximize


def search_space_updated(state: State, event: e.SearchSpaceUpdated, out: list[Action]) -> None:
    """Keep another search space, for processes of the tuner to come, too.

    Args:
        state: changed in place.
        event: the search space.
        out: gets the news for the tuner, if its process is there.
    """
    state.search_space = event.search_space
    if state.host_ready:
        out.append(TellSearchSpace(event.search_space))


def experiment_created(state: State, event: e.ExperimentCreated) -> None:
    """Take in the first settings."""
    state.settings = event.settings


def tick(_state: State, _event: e.Tick) -> None:
    """Change nothing: the time has come in with the event, and the joint rules go by it."""


EFFECTS: Final[Effects] = {
    e.ExperimentCreated: quiet(experiment_created),
    e.HeadStarted: quiet(head_started),
    e.Tick: quiet(tick),
    e.TrialSubmitted: trial_submitted,
    e.TrialStopRequested: trial_stop_requested,
    e.StopRequested: stop_requested,
    e.SettingsUpdated: quiet(settings_updated),
    e.SearchSpaceUpdated: search_space_updated,
    e.DataImported: data_imported,
    e.ImportDelivered: import_delivered,
}
