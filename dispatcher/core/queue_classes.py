"""The queue, told apart into lines whose trials can stand in for one another.

Ten thousand trials with one kind of need are one line: looking for whom there is a place costs
a look at the first of each line, not at each trial.
"""

from collections import deque
from collections.abc import Iterable

from dispatcher.core.ids import TrialId
from dispatcher.core.model import QueueClass, State, Trial
from dispatcher.core.resources import Needs
from dispatcher.core.stores import there

#: Of trials that ask for nothing of their own.
_USUAL = QueueClass(None, None, None)


def needs_of(state: State, trial: Trial) -> Needs:
    """What a trial takes: its own needs, else those of the experiment."""
    return trial.needs if trial.needs is not None else state.settings.needs


def home_of(state: State, trial: Trial) -> str | None:
    """The storage domain that holds what the trial restores, or the first version that it reads;
    None if it may run anywhere."""
    if trial.parent is not None:
        return state.trials[trial.parent].domain
    if trial.reads:
        store, number = trial.reads[0]
        version = there(state, store, number)
        return None if version is None else version.domain
    return None


def enter(state: State, trial: Trial) -> None:
    """Stand at the end of the queue."""
    state.came += 1
    trial.place = state.came
    state.queued[trial.id] = None
    line = _line_of(state, trial)
    standing = state.lines.get(line)
    if standing is None:
        state.lines[line] = deque((trial.id,))
        state.all_wait = False
    else:  # if there was no place for the first of them, there is none for this one
        standing.append(trial.id)
    if trial.needs is not None:
        state.unjudged = True


def leave(state: State, trial: Trial) -> None:
    """Leave the queue, mostly from the head of its line."""
    if trial.id not in state.queued:
        return
    del state.queued[trial.id]
    state.all_wait = False  # something may have been kept for it
    line = _line_of(state, trial)
    standing = state.lines[line]
    if standing[0] == trial.id:
        standing.popleft()
    else:
        standing.remove(trial.id)
    if not standing:
        del state.lines[line]


def heads(state: State) -> Iterable[Trial]:
    """The first of each line, whose turn it is first: by priority, then as they came."""
    firsts = [state.trials[standing[0]] for standing in state.lines.values()]  # mostly one
    if len(firsts) > 1:
        firsts.sort(key=lambda trial: (-needs_of(state, trial).priority, trial.place, trial.id))
    return firsts


def told_apart(state: State) -> dict[QueueClass, deque[TrialId]]:
    """The lines, worked out anew from the queue."""
    found: dict[QueueClass, deque[TrialId]] = {}
    for trial_id in state.queued:
        found.setdefault(_line_of(state, state.trials[trial_id]), deque()).append(trial_id)
    return found


def _line_of(state: State, trial: Trial) -> QueueClass:
    """Nothing that it is made of changes while a trial is queued."""
    usual = trial.needs is None and trial.parent is None and trial.failed_on is None
    if usual and not trial.reads:
        return _USUAL
    return QueueClass(trial.needs, home_of(state, trial), trial.failed_on)
