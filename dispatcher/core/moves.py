"""Moving a trial from one state to another: the only code that touches the collections."""

from dispatcher.core import queue_classes
from dispatcher.core.ids import TrialId
from dispatcher.core.model import State, Trial, TrialState


def move(state: State, trial: Trial, to: TrialState, *, due: float = 0.0) -> None:
    """Take the trial out of its collection and put it into that of ``to``.

    Args:
        state: changed in place.
        trial: in any state.
        to: its new state.
        due: when a trial in back-off may start again, in seconds since the epoch.
    """
    _leave(state, trial)
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
            state.running[trial.id] = None
        case TrialState.BACKOFF:
            state.backoff[trial.id] = due
        case TrialState.DELIVERING:
            state.delivering[trial.id] = None
        case TrialState.ENDED:
            pass


def let_go(state: State, trial: Trial) -> None:
    """BLOCKED → OPEN, as :func:`move` would: the one move that happens thousands at a time."""
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
    state.next_id = TrialId(number + 1)
    trial = Trial(id=number, state=TrialState.ENDED, since=state.now, by_hand=by_hand)
    state.trials[number] = trial
    move(state, trial, to)
    return trial


def asks(state: State, trial: Trial) -> None:
    """Count that the tuner is asked for this trial (again)."""
    trial.asked += 1
    trial.asked_after = state.results_seen
    trial.asked_serial = state.version_serial
    state.dirty[trial.id] = None
