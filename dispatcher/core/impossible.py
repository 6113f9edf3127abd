"""Needs that no worker can ever meet: reported before trials wait for them in vain.

Judged once each worker that takes part has reported its resources. A device that is in trouble, a
host that is lost for now: both may come back, and count. If each trial has such needs, the
experiment ends; if one trial has, that trial ends as one that could not start.
"""

from dispatcher.core.actions import Action, ReportTrial
from dispatcher.core.endings import conclude
from dispatcher.core.events import AttemptEnded
from dispatcher.core.failures import take_note
from dispatcher.core.gates import deliver
from dispatcher.core.model import EndReason, Phase, Rule, State, Trial, Worker
from dispatcher.core.needs_text import best_of, needs_text
from dispatcher.core.resource_match import domain_of, never_fits
from dispatcher.core.resources import Needs
from dispatcher.core.trouble import is_given_up


def judge(state: State, out: list[Action]) -> None:
    """End what can never run: called when something has come up that may show it."""
    if state.phase is not Phase.RUNNING:
        return
    state.unjudged = False
    if not _all_have_reported(state):
        return
    usual = state.settings.needs
    workers = list(state.workers.values())
    if _nowhere(usual, workers):
        state.phase = Phase.DRAINING
        state.over_phase = Phase.FAILED
        state.phase_reason = _sentence("each trial", usual, workers)
        return
    classes = sorted(state.queue_classes.items(), key=lambda one: state.trials[one[1][0]].place)
    for (needs, home, _), members in classes:
        if needs is None:
            continue
        reached = [w for w in workers if home is None or domain_of(state, w) == home]
        if reached and _nowhere(needs, reached):
            for trial_id in list(members):
                text = _sentence(f"trial {trial_id}", needs, reached)
                _refuse(state, state.trials[trial_id], text, out)


def _all_have_reported(state: State) -> bool:
    workers = state.workers.values()
    reported = sum(worker.known is not None or is_given_up(worker) for worker in workers)
    return reported >= state.settings.workers


def _nowhere(needs: Needs, workers: list[Worker]) -> bool:
    known = [worker for worker in workers if worker.known is not None]
    return needs.counted and bool(known) and all(never_fits(needs, worker) for worker in known)


def _sentence(subject: str, needs: Needs, workers: list[Worker]) -> str:
    needed = needs_text(needs)
    return f"{subject} needs {needed}, which no worker can ever give: {best_of(needs, workers)}"


def _refuse(state: State, trial: Trial, text: str, out: list[Action]) -> None:
    """End a trial that can never start: no attempt follows, and its children fail with it."""
    state.trigger = Rule.NEVER_FITS
    trial.refusal = text
    ending = conclude(trial, EndReason.START_FAILED, state.settings)
    trial.outcome = ending.outcome
    trial.success = ending.success
    trial.result = ending.value
    trial.verdict_due = ending.verdict
    event = AttemptEnded(trial.id, trial.attempt, EndReason.START_FAILED, text=text)
    take_note(state, trial, ending, EndReason.START_FAILED, event)
    out.append(ReportTrial(trial.id, text))
    deliver(state, trial, out)
