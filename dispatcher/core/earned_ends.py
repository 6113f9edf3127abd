"""Ends that a search earns: its target reached, no progress any more, its time of trials used up.

They are decided by what is in the journal, never by metrics of trials that run: a resume decides
the same. Such an end begins a drain, as the end of ``maxExperimentDuration`` does: no further trial
is begun, what runs may finish, and the experiment is completed.
"""

from dispatcher.core.model import Phase, State, Trial
from dispatcher.core.results import keeps, number_in


def note_result(state: State, trial: Trial) -> None:
    """Count the result of a trial that has ended, if it has one that is a number.

    Args:
        state: changed in place.
        trial: with its result.
    """
    progress, settings = state.progress, state.settings
    text = trial.result
    number = None if text is None else number_in(text, settings.end_objective)
    if settings.maximize is None or text is None or number is None:
        return
    if not keeps(text, settings.at_most, settings.at_least):
        progress.since_mark += 1
        return
    sign = 1.0 if settings.maximize else -1.0
    if progress.best is None or sign * (number - progress.best) > 0:
        progress.best, progress.best_trial = number, trial.id
    gain = float("inf") if progress.mark is None else sign * (number - progress.mark)
    if gain > 0 and gain >= settings.least_progress:
        progress.mark, progress.since_mark = number, 0
    else:
        progress.since_mark += 1


def forget_results(state: State) -> None:
    """Begin to count anew: results of before are numbers of another objective.

    Args:
        state: changed in place.
    """
    progress = state.progress
    progress.best = progress.best_trial = progress.mark = None
    progress.since_mark = 0


def spend(state: State, until: float) -> None:
    """Count the time of attempts; called before the number of those that run changes.

    Args:
        state: changed in place.
        until: the moment up to which it is counted.
    """
    progress = state.progress
    progress.spent_s += len(state.running) * max(0.0, until - progress.spent_at)
    progress.spent_at = state.now


def spent_at(state: State) -> float | None:
    """When the time of all attempts together is used up, if those that run go on; None if no such
    moment is known."""
    limit, progress = state.settings.most_trial_s, state.progress
    if limit is None:
        return None
    left_s = limit - progress.spent_s
    if left_s <= 0:
        return progress.spent_at
    return progress.spent_at + left_s / len(state.running) if state.running else None


def watch(state: State) -> None:
    """Begin a drain if the search has earned its end."""
    if state.phase is not Phase.RUNNING:
        return
    reason = _target(state) or _no_progress(state) or _time_of_trials(state)
    if reason:
        state.phase = Phase.DRAINING
        state.over_phase = Phase.COMPLETED
        state.phase_reason = reason


def _target(state: State) -> str:
    target, progress = state.settings.target, state.progress
    if target is None or progress.best is None:
        return ""
    if progress.best < target if state.settings.maximize else progress.best > target:
        return ""
    return (
        f"the target {target:g}{_of(state)} is reached by trial {progress.best_trial}: "
        f"{progress.best:.6g}"
    )


def _no_progress(state: State) -> str:
    patience, progress = state.settings.patience, state.progress
    if not patience or progress.since_mark < patience:
        return ""
    if progress.best is None:
        return f"no progress in {progress.since_mark} trials: no result keeps the bounds"
    return (
        f"no progress in {progress.since_mark} trials: the best{_of(state)} is "
        f"{progress.best:.6g}, of trial {progress.best_trial}"
    )


def _of(state: State) -> str:
    """The objective that is meant, where it has a name of its own."""
    name = state.settings.end_objective
    return "" if name == "default" else f" of {name!r}"


def _time_of_trials(state: State) -> str:
    due = spent_at(state)
    if due is None or state.now < due:
        return ""
    return f"all trials together have taken {state.settings.most_trial_s:g} s (trialTime)"
