"""How trials end: the one table that decides what the tuner and the children are told.

Rows of the table (design, section 1) are the branches of :func:`conclude`, in its order.
"""

from dataclasses import dataclass

from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, FailReason, Outcome, Trial, Verdict
from dispatcher.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Ending:
    """``value``: JSON text for ``receive_trial_result``, or None for no call of it."""

    outcome: Outcome
    value: str | None
    success: bool
    verdict: Verdict


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
}


def conclude(trial: Trial, reason: EndReason, settings: Settings) -> Ending:
    """What a trial's end means, once its last attempt is over and will not be retried."""
    promised = trial.save_path is not None
    committed = trial.weights is not None
    own = Verdict() if trial.self_published else None  # complete weights survive a bad end

    if reason is EndReason.FINISHED and trial.final is not None:
        verdict = Verdict() if committed or not promised else _no(FailReason.WEIGHTS_MISSING)
        return Ending(Outcome.SUCCEEDED, trial.final, True, verdict)

    if reason is EndReason.FINISHED and not settings.silent_is_failure:
        verdict = Verdict() if committed or not promised else _no(FailReason.WEIGHTS_MISSING)
        return Ending(Outcome.SUCCEEDED, settings.substitute_result, True, verdict)

    outcome, fail = _FAILURES[reason]
    if reason is EndReason.STOPPED_EARLY:
        keeps = settings.early_stop_keeps_result
        value = (trial.final or trial.last_intermediate) if keeps else trial.final
        return Ending(outcome, value, keeps, own or _no(fail))

    if trial.final is not None:  # a crash while the process tears itself down is common
        return Ending(outcome, trial.final, False, own or _no(fail))

    return Ending(outcome, None, False, _no(fail))


def _no(reason: FailReason) -> Verdict:
    return Verdict(reason)


def retries(trial: Trial, reason: EndReason, settings: Settings) -> bool:
    """Whether another attempt follows. A trial that has reported its result, or that was to
    be ended, is never tried again."""
    if trial.final is not None or trial.kill_reason is not None:
        return False
    match reason:
        case EndReason.SHUTDOWN:
            return True
        case EndReason.LOST:
            return trial.losses < settings.lost_retries
        case (
            EndReason.FAILED
            | EndReason.SIGNALLED
            | EndReason.OUT_OF_MEMORY
            | EndReason.START_FAILED
        ):
            return trial.failures < settings.trial_retries
        case _:  # finished, timed out, killed, stopped early: the same would happen again
            return False


def backoff_s(trial: Trial, settings: Settings) -> float:
    """Seconds before the next attempt: doubles with each failure, bounded."""
    tries = max(trial.failures + trial.losses - 1, 0)
    return float(min(settings.retry_backoff_s * 2 ** min(tries, 30), settings.retry_backoff_max_s))


#: Longest chain of failed ancestors that a ``ParentFailed`` names.
CHAIN_LIMIT = 16


def inherited_failure(parent: TrialId, verdict: Verdict, reason: FailReason) -> Verdict:
    """The verdict on a request or trial that failed since its parent did."""
    return Verdict(reason, (parent, *verdict.chain)[:CHAIN_LIMIT])
