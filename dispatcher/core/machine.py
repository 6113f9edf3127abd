"""Applying an event: the only way in which the state changes."""

from typing import Final, NamedTuple

from dispatcher.core import draining, earned_ends, stalls
from dispatcher.core import events as e
from dispatcher.core.actions import Action, Assess, LaunchTuner, LaunchWorker
from dispatcher.core.coupling import settle
from dispatcher.core.legality import counts
from dispatcher.core.model import AttemptState, Phase, State
from dispatcher.core.place_ends import next_hand_over
from dispatcher.core.settings import Settings
from dispatcher.core.transitions import (
    Effects,
    attempt,
    disk,
    request,
    store,
    tuner_host,
    user,
    weights,
    worker,
)
from dispatcher.core.transitions.attempt import metric_reported, start_of, stop_of
from dispatcher.core.transitions.tuner_host import outstanding_calls

#: All effects there are: one for each kind of event that has a row in the journal.
EFFECTS: Final[Effects] = {
    kind: effect
    for family in (attempt, disk, request, store, tuner_host, user, weights, worker)
    for kind, effect in family.EFFECTS.items()
}


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
        BrokenInvariant: an effect would move a trial where no table leads; the state is half
            changed.
    """
    row = e.CATALOGUE[type(event)]
    if not counts(state, event, row):
        return Step([], False)
    if not row.journalled:
        return _beside_the_journal(state, event)
    state.last_event_at = state.now
    state.now = max(at, state.now)
    if row.frees:
        state.all_wait = False
    out: list[Action] = []
    state.trigger = type(event)
    counted = EFFECTS[type(event)](state, event, out)
    settle(state, out)
    return Step(out, counted is not False)


def _beside_the_journal(state: State, event: e.Event) -> Step:
    """Take in an event that the journal does not keep. It may change nothing that a replay must
    find: neither the time nor anything that follows from it. Only metrics leave a trace (the
    newest value)."""
    if not isinstance(event, e.MetricReported):
        return Step([], True)
    if not metric_reported(state, event):
        return Step([], False)
    if state.settings.assess:
        return Step([Assess(event.trial, event.value, event.attempt, event.seq)], True)
    return Step([], True)


def outstanding(state: State) -> list[Action]:
    """The actions that should be under way in this state: restart is to replay, then to carry these
    out."""
    out: list[Action] = []
    out.extend(outstanding_calls(state) if state.host_ready else [LaunchTuner()])
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


def next_deadline(state: State) -> float | None:
    """When a :class:`~dispatcher.core.events.Tick` is due, in seconds since the epoch."""
    due: list[float] = []
    hands_over = next_hand_over(state)
    if hands_over is not None and state.phase in (Phase.RUNNING, Phase.DRAINING):
        due.append(hands_over)
    if state.phase is Phase.DRAINING:
        over = state.fail_at if state.fail_at is not None else draining.due(state)
        due.extend([] if over is None else [over])
    if state.phase is Phase.RUNNING:
        due.extend(state.backoff.values())  # no attempt follows in any other phase
        stall = stalls.due(state)
        if stall is not None:
            due.append(stall)
        if state.settings.max_duration_s is not None and state.started_at is not None:
            left = state.settings.max_duration_s - state.active_s
            due.append(state.started_at + left)
        spent = earned_ends.spent_at(state)
        due.extend([] if spent is None else [spent])
        due.extend([] if state.first_return is None else [state.first_return])
    return min(due, default=None)
