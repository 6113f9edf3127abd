"""Moving a trial from one state to another: the only code that touches the collections."""

from dispatcher.core import earned_ends, queue_classes
from dispatcher.core.arrows import ARROWS, name_of
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Move, State, Trial, TrialState
from dispatcher.errors import BrokenInvariant


def move(state: State, trial: Trial, to: TrialState, *, due: float = 0.0) -> None:
    """Take the trial out of its collection and put it into that of ``to``.

    Args:
        state: changed in place.
        trial: in a state from which what happens may take it to ``to``.
        to: its new state.
        due: when a trial in back-off may start again, in seconds since the epoch.

    Raises:
        BrokenInvariant: the tables have no such arrow.
    """
    _follow(state, trial.id, trial.state, to)
    _leave(state, trial)
    _enter(state, trial, to, due)


def _follow(state: State, trial: TrialId, before: TrialState | None, to: TrialState) -> None:
    """Check a move against the tables. Not an ``InvalidTransition``: the event was legal, so that
    whoever sent it is not to blame, and the state is half changed by now."""
    trigger = state.trigger
    if trigger is None or (before, to) not in ARROWS[trigger]:
        known = "new" if before is None else before.name
        cause = "no event" if trigger is None else name_of(trigger)
        text = f"trial {trial} is {known}: {cause} may not move it to {to.name}"
        raise BrokenInvariant(text, trial=trial)
    if state.trace is not None:
        state.trace.append(Move(trial, before, to, trigger))


def _enter(state: State, trial: Trial, to: TrialState, due: float = 0.0) -> None:
    trial.state = to
    trial.since = state.now
    state.dirty[trial.id] = None
    match to:
        case TrialState.OPEN:
            state.open[trial.id] = None
        case TrialState.BLOCKED:
            state.blocked[trial.id] = None
        case TrialState.PARKED:
            # Not ``results_seen``: a result that crossed with "not now" could change it.
            state.parked[trial.id] = trial.asked_after
        case TrialState.HELD:
            state.held[trial.id] = None
        case TrialState.QUEUED:
            queue_classes.enter(state, trial)
        case TrialState.RUNNING:
            earned_ends.spend(state, state.now)
            state.running[trial.id] = None
        case TrialState.BACKOFF:
            state.backoff[trial.id] = due
        case TrialState.DELIVERING:
            state.delivering[trial.id] = None
        case TrialState.ENDED:
            pass


def let_go(state: State, trial: Trial) -> None:
    """BLOCKED → OPEN, as :func:`move` would: the one move that happens thousands at a time."""
    _follow(state, trial.id, TrialState.BLOCKED, TrialState.OPEN)
    del state.blocked[trial.id]
    state.open[trial.id] = None
    trial.state = TrialState.OPEN
    trial.since = state.now
    state.dirty[trial.id] = None


def _leave(state: State, trial: Trial) -> None:
    match trial.state:
        case TrialState.OPEN:
            state.open.pop(trial.id, None)
        case TrialState.BLOCKED:
            state.blocked.pop(trial.id, None)
        case TrialState.PARKED:
            state.parked.pop(trial.id, None)
        case TrialState.HELD:
            state.held.pop(trial.id, None)
        case TrialState.QUEUED:
            queue_classes.leave(state, trial)
        case TrialState.RUNNING:
            earned_ends.spend(state, state.now)
            state.running.pop(trial.id, None)
        case TrialState.BACKOFF:
            state.backoff.pop(trial.id, None)
        case TrialState.DELIVERING:
            state.delivering.pop(trial.id, None)
        case TrialState.ENDED:
            pass


def new_trial(state: State, *, to: TrialState, by_hand: bool = False) -> Trial:
    """A record under the next id, in state ``to``.

    Args:
        state: changed in place.
        to: its first state.
        by_hand: a user has proposed it.
    """
    number = state.next_id
    _follow(state, number, None, to)
    state.next_id = TrialId(number + 1)
    trial = Trial(id=number, state=to, since=state.now, by_hand=by_hand)
    state.trials[number] = trial
    _enter(state, trial, to)
    return trial


def asks(state: State, trial: Trial) -> None:
    """Count that the tuner is asked for this trial (again)."""
    trial.asked += 1
    trial.asked_after = state.results_seen
    trial.asked_serial = state.version_serial
    state.dirty[trial.id] = None
