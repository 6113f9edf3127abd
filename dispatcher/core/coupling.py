"""Joint rules: what follows from the state as a whole after an event has had its effect.

They run in this order and once per event: each only enables those after it, except that a
finished tuner may open gates, which the loop in :func:`settle` catches.
"""

from dispatcher.core import earned_ends, impossible, stalls
from dispatcher.core.actions import Action, Finish, OpenRequest
from dispatcher.core.asking import may_open_another
from dispatcher.core.draining import waits_for_tuner
from dispatcher.core.failures import all_failed
from dispatcher.core.gates import end_without_trial
from dispatcher.core.handing_over import hand_over
from dispatcher.core.ids import TrialId
from dispatcher.core.model import OVER, Phase, Rule, State, TrialState
from dispatcher.core.moves import asks, move, new_trial
from dispatcher.core.placement import may_go, next_placement
from dispatcher.core.quarantine import end_quarantines
from dispatcher.core.queue_classes import needs_of
from dispatcher.core.resource_match import never_fits
from dispatcher.core.settings import ABANDONED_IN_A_ROW, DELIVERY_BACKLOG
from dispatcher.core.transitions.attempt import start_attempt


def settle(state: State, out: list[Action]) -> None:
    """Bring the state to rest: do all that follows from it, now that an event had its effect.

    Each rule that moves trials says so in ``state.trigger``; after the last one nothing may.
    """
    state.trigger = None
    _end_of_time(state)
    earned_ends.watch(state)
    hand_over(state, out)
    if state.phase is Phase.RUNNING:
        _end_backoffs(state)
    if state.unjudged:  # also by what has just come back to the queue
        impossible.judge(state, out)
    if state.phase is Phase.RUNNING:
        end_quarantines(state)
        _start_attempts(state, out)
        _open_requests(state, out)
        while _tuner_is_done(state):
            _end_parked(state, out)
            _start_attempts(state, out)
            _open_requests(state, out)
    if stalls.watch(state, out):
        _open_requests(state, out)  # more may be asked for
    _finish(state, out)  # last: a stall may have ended the experiment
    state.trigger = None


def _end_of_time(state: State) -> None:
    limit = state.settings.max_duration_s
    if limit is None or state.phase is not Phase.RUNNING or state.started_at is None:
        return
    if state.active_s + state.now - state.started_at >= limit:
        state.phase = Phase.DRAINING
        state.over_phase = Phase.COMPLETED
        state.phase_reason = "maxExperimentDuration has passed"


def _end_backoffs(state: State) -> None:
    if not state.backoff:
        return
    state.trigger = Rule.BACKOFF_OVER
    for trial_id in [t for t, due in state.backoff.items() if due <= state.now]:
        move(state, state.trials[trial_id], TrialState.QUEUED)


def _start_attempts(state: State, out: list[Action]) -> None:
    while not (state.low_disks or state.all_wait):
        place = next_placement(state)
        if place is None:
            # Looking again costs a look at each line on each worker; it waits for a reason.
            state.all_wait = len(state.running) < state.settings.slots
            return
        for trial in place.passed:
            if may_go(state, trial, place.worker):
                trial.passed_over += not never_fits(needs_of(state, trial), place.worker)
        state.trigger = Rule.PLACED
        start_attempt(state, place.trial, place.worker, place.devices, out)


def _open_requests(state: State, out: list[Action]) -> None:
    """Open the requests without which a slot would idle (promise 5 and design §1)."""
    if not state.host_ready or state.tuner_done or state.low_disks:
        return
    while _slot_would_idle(state):
        if state.parked:
            # Lookahead is about new decisions; this one was opened before, and those who
            # fill the lookahead may be waiting for it.
            again = _parked_to_ask(state)
            if again is None:
                return  # "not now" still stands: no new request either
            trial = state.trials[again]
            state.trigger = Rule.ASKED_AGAIN
            move(state, trial, TrialState.OPEN)
        elif may_open_another(state):
            state.trigger = Rule.ASKED
            trial = new_trial(state, to=TrialState.OPEN)
        else:
            return
        asks(state, trial)
        out.append(OpenRequest(trial.id))


def _slot_would_idle(state: State) -> bool:
    busy = len(state.running) + len(state.queued) + len(state.backoff) + len(state.open)
    return (
        busy < state.settings.slots
        and len(state.delivering) <= 4 * state.settings.slots + DELIVERY_BACKLOG
    )


def _parked_to_ask(state: State) -> TrialId | None:
    for trial_id, seen in state.parked.items():
        if seen < state.results_seen:
            return trial_id
    return None


def _tuner_is_done(state: State) -> bool:
    """*Not now* becomes *no more* when nothing is left whose end could change the answer."""
    return (
        bool(state.parked)
        and state.host_ready
        and not (state.open or state.running or state.queued or state.backoff or state.delivering)
        and _parked_to_ask(state) is None
        # Every wait of ours ends at a parked request then; a thread in a wait that is not
        # ours may still come back with a trial.
        and not stalls.foreign(state)
    )


def _end_parked(state: State, out: list[Action]) -> None:
    state.trigger = Rule.TUNER_DONE
    for trial_id in list(state.parked):
        end_without_trial(state, state.trials[trial_id], out)
    left = state.open or state.blocked or state.held or state.delivering
    if not left:  # else those who waited for it may still bring results
        state.tuner_done = True


def _finish(state: State, out: list[Action]) -> None:
    if state.phase in OVER:
        return
    if state.phase is Phase.RUNNING:
        end = _nothing_left(state)
        if end is None:
            return
        state.phase, state.phase_reason = end
    else:
        if state.running:
            return
        if waits_for_tuner(state):
            return  # a stop does not wait for the tuner: results are delivered after a resume
        state.phase = state.over_phase
    nothing_to_show = all_failed(state)
    if state.phase is Phase.COMPLETED and nothing_to_show:
        state.phase, state.phase_reason = Phase.FAILED, nothing_to_show
    out.append(Finish(state.phase, state.phase_reason))


def _nothing_left(state: State) -> tuple[Phase, str] | None:
    if (
        state.open
        or state.blocked
        or state.parked
        or state.held
        or state.queued
        or state.running
        or state.backoff
        or state.delivering
    ):
        return None
    limit = state.settings.max_trials
    if limit is not None and state.submitted >= limit:
        which = "the only trial is" if state.submitted == 1 else f"all {state.submitted} trials are"
        return Phase.COMPLETED, f"{which} over"
    if state.tuner_done:
        return Phase.COMPLETED, "the tuner has no more trials"
    if state.abandoned_in_a_row >= ABANDONED_IN_A_ROW:
        reason = f"the last {state.abandoned_in_a_row} requests failed with their parents"
        last = f"; the last one: {state.abandoned_text}" if state.abandoned_text else ""
        return Phase.FAILED, f"{reason}, and nothing runs that could change that{last}"
    return None
