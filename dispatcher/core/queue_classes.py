"""The queue, grouped into classes of trials that can stand in for one another.

Ten thousand trials with the same needs are one class. Looking for a trial that fits somewhere costs
a look at the first of each class, not at each trial.
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
    """The needs of a trial: its own, else those of the experiment."""
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
    """Put the trial at the end of the queue."""
    state.came += 1
    trial.place = state.came
    state.queued[trial.id] = None
    queue_class = _class_of(state, trial)
    members = state.queue_classes.get(queue_class)
    if members is None:
        state.queue_classes[queue_class] = deque((trial.id,))
        state.all_wait = False
    else:  # if there was no place for the first of them, there is none for this one
        members.append(trial.id)
    if trial.needs is not None:
        state.unjudged = True


def leave(state: State, trial: Trial) -> None:
    """Take the trial out of the queue, where it mostly is the first of its class."""
    if trial.id not in state.queued:
        return
    del state.queued[trial.id]
    state.all_wait = False  # something may have been kept for it
    queue_class = _class_of(state, trial)
    members = state.queue_classes[queue_class]
    if members[0] == trial.id:
        members.popleft()
    else:
        members.remove(trial.id)
    if not members:
        del state.queue_classes[queue_class]


def heads(state: State) -> Iterable[Trial]:
    """The first trial of each class, by priority, then in the order of arrival."""
    firsts = [state.trials[members[0]] for members in state.queue_classes.values()]  # mostly one
    if len(firsts) > 1:
        firsts.sort(key=lambda trial: (-needs_of(state, trial).priority, trial.place, trial.id))
    return firsts


def group_queue(state: State) -> dict[QueueClass, deque[TrialId]]:
    """The queue's classes with their trials, computed anew from ``state.queued``."""
    classes: dict[QueueClass, deque[TrialId]] = {}
    for trial_id in state.queued:
        classes.setdefault(_class_of(state, state.trials[trial_id]), deque()).append(trial_id)
    return classes


def _class_of(state: State, trial: Trial) -> QueueClass:
    """The class of a queued trial. It cannot change while the trial is queued."""
    usual = trial.needs is None and trial.parent is None and trial.failed_on is None
    if usual and not trial.reads:
        return _USUAL
    return QueueClass(trial.needs, home_of(state, trial), trial.failed_on)
