"""How trials end: the one table that decides what the tuner and the children get.

Rows of the table (design, section 1) are the branches of :func:`_by_table`, in its order.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, FailReason, Outcome, State, Trial, TrialState, Verdict
from dispatcher.core.results import lacking
from dispatcher.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Ending:
    """``value``: JSON text for ``receive_trial_result``, or None for no call of it. ``refusal``:
    why a result that was reported does not count."""

    outcome: Outcome
    value: str | None
    success: bool
    verdict: Verdict
    refusal: str = ""


_FAILURES: dict[EndReason, tuple[Outcome, FailReason]] = {
    EndReason.FINISHED: (Outcome.FAILED, FailReason.FAILED),  # silent, and the file forbids it
    EndReason.FAILED: (Outcome.FAILED, FailReason.FAILED),
    EndReason.SIGNALLED: (Outcome.FAILED, FailReason.FAILED),
    EndReason.OUT_OF_MEMORY: (Outcome.FAILED, FailReason.FAILED),
    EndReason.START_FAILED: (Outcome.FAILED, FailReason.FAILED),
    EndReason.TIMED_OUT: (Outcome.TIMED_OUT, FailReason.TIMED_OUT),
    EndReason.KILLED: (Outcome.KILLED, FailReason.KILLED),
    EndReason.STOPPED_EARLY: (Outcome.STOPPED_EARLY, FailReason.STOPPED_EARLY),
    EndReason.SHUTDOWN: (Outcome.FAILED, FailReason.FAILED),
    EndReason.LOST: (Outcome.LOST, FailReason.LOST),
    EndReason.PREEMPTED: (Outcome.LOST, FailReason.LOST),
}


_COME_IN = Verdict()  # one for all: records of ended trials are kept for ever


def conclude(trial: Trial, reason: EndReason, settings: Settings) -> Ending:
    """Decide how a trial ends, once its last attempt is over and will not be retried.

    A trial whose result lacks an objective of the experiment has failed, and has no result.

    Args:
        trial: with all that its attempts have brought; not changed.
        reason: how the last attempt ended.
        settings: whether a silent trial fails, whether one that was stopped early keeps its result,
            and what a result must hold.
    """
    ending = _by_table(trial, reason, settings)
    if ending.value is None or ending.value is settings.substitute_result:
        return ending
    name = lacking(ending.value, settings.objectives)
    if not name:
        return ending
    outcome = Outcome.FAILED if ending.outcome is Outcome.SUCCEEDED else ending.outcome
    verdict = _COME_IN if trial.self_published else _no(FailReason.FAILED)
    text = f"its result has no number {name!r}, which is an objective"
    return Ending(outcome, None, False, verdict, text)


def _by_table(trial: Trial, reason: EndReason, settings: Settings) -> Ending:
    """The ending by the design's table, whatever the result holds."""
    promised = trial.save_path is not None
    committed = trial.weights is not None
    own = _COME_IN if trial.self_published else None  # complete weights survive a bad end

    if reason is EndReason.FINISHED and trial.final is not None:
        verdict = _COME_IN if committed or not promised else _no(FailReason.WEIGHTS_MISSING)
        return Ending(Outcome.SUCCEEDED, trial.final, True, verdict)

    if reason is EndReason.FINISHED and not settings.silent_is_failure:
        verdict = _COME_IN if committed or not promised else _no(FailReason.WEIGHTS_MISSING)
        return Ending(Outcome.SUCCEEDED, settings.substitute_result, True, verdict)

    outcome, fail = _FAILURES[reason]
    if reason is EndReason.STOPPED_EARLY:
        keeps = settings.early_stop_keeps_result
        value = (trial.final or trial.last_intermediate) if keeps else trial.final
        return Ending(outcome, value, keeps, own or _no(fail))

    if trial.final is not None:  # a crash while the process tears itself down is common
        return Ending(outcome, trial.final, False, own or _no(fail))

    return Ending(outcome, None, False, _no(fail))


#: Events that may end attempts: of no others :func:`judged_by` has anything to say.
ENDS_OF_ATTEMPTS = frozenset({e.AttemptEnded, e.WorkerLost, e.WorkerJoined, e.WorkerWaits})


def judged_by(state: State, event: e.Event) -> Iterator[e.LastMetricKept]:
    """The events to be journalled, and applied, before ``event``: metrics that are not in the
    journal, and by which :func:`conclude` may judge the attempts that this event ends."""
    if not state.settings.early_stop_keeps_result:
        return
    ending: list[TrialId] = []
    match event:
        case e.AttemptEnded(trial=trial_id):
            ending = [trial_id]
        case (
            e.WorkerLost(worker=worker)
            | e.WorkerJoined(worker=worker)
            | e.WorkerWaits(worker=worker)
        ):
            ending = sorted(state.workers[worker].running) if worker in state.workers else []
        case _:
            return
    for trial_id in ending:
        trial = state.trials.get(trial_id)
        if trial is None or trial.state is not TrialState.RUNNING:
            continue
        early = EndReason.STOPPED_EARLY in (trial.kill_reason, getattr(event, "reason", None))
        if early and trial.last_intermediate is not None:
            yield e.LastMetricKept(trial_id, trial.attempt, trial.last_intermediate)


def _no(reason: FailReason) -> Verdict:
    return Verdict(reason)


#: Ends for which a trial can do nothing: ``lost_retries`` bounds them.
NOT_ITS_FAULT = frozenset({EndReason.LOST, EndReason.PREEMPTED})

#: Ends that count against the trial: ``trial_retries`` bounds them. A time-out is not among
#: them, since the same would happen again.
ITS_FAULT = frozenset(
    {EndReason.FAILED, EndReason.SIGNALLED, EndReason.OUT_OF_MEMORY, EndReason.START_FAILED}
)


def retries(trial: Trial, reason: EndReason, settings: Settings) -> bool:
    """Whether another attempt follows. A trial that has reported its result, or that was to be
    ended, is never tried again.

    Args:
        trial: with its counts of attempts so far.
        reason: how its newest attempt ended.
        settings: the limits.
    """
    if trial.final is not None or trial.kill_reason is not None:
        return False
    if reason is EndReason.SHUTDOWN:
        return True
    if reason in settings.retries:  # a limit of its own, and a count of its own
        return (trial.retried or {}).get(reason, 0) < settings.retries[reason]
    if reason in NOT_ITS_FAULT:
        return trial.losses < settings.lost_retries
    return reason in ITS_FAULT and trial.failures < settings.trial_retries


def spend_retry(trial: Trial, reason: EndReason, settings: Settings) -> None:
    """Count the attempt that :func:`retries` has just allowed another one for.

    Args:
        trial: one of its counts grows.
        reason: how its newest attempt ended.
        settings: the limits; a reason with a limit of its own has a count of its own.
    """
    if reason in settings.retries:
        trial.retried = dict(trial.retried or {})
        trial.retried[reason] = trial.retried.get(reason, 0) + 1
    elif reason in NOT_ITS_FAULT:
        trial.losses += 1
    else:
        trial.failures += 1


def backoff_s(trial: Trial, reason: EndReason, settings: Settings) -> float:
    """Seconds before the next attempt; doubles with each of its kind, bounded.

    After its first loss a trial is tried again at once: there is nothing to wait for but a place,
    and placement waits for that.

    Args:
        trial: the attempt to be followed is counted already.
        reason: how that attempt ended.
        settings: the first pause, and the longest.
    """
    own = trial.retried or {}
    losses = trial.losses + sum(n for r, n in own.items() if r in NOT_ITS_FAULT)
    failures = trial.failures + sum(n for r, n in own.items() if r not in NOT_ITS_FAULT)
    if not settings.losses_at_once:
        doublings = failures + losses - 1
    elif reason in NOT_ITS_FAULT:
        doublings = losses - 2
    else:
        doublings = failures - 1
    if doublings < 0:
        return 0.0
    pause_s = settings.retry_backoff_s * 2 ** min(doublings, 30)
    return float(min(pause_s, settings.retry_backoff_max_s))


#: Longest chain of failed ancestors that a ``ParentFailed`` names.
CHAIN_LIMIT = 16


def inherited_failure(parent: TrialId, verdict: Verdict, reason: FailReason) -> Verdict:
    """The verdict on a request or trial that failed since its parent did.

    Args:
        parent: the trial that failed.
        verdict: the parent's own.
        reason: of the new verdict.
    """
    return Verdict(reason, (parent, *verdict.chain)[:CHAIN_LIMIT])
