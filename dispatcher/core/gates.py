"""Opening a gate: the trial gets its verdict, waits for it end, held children move."""

from dispatcher.core import waits
from dispatcher.core.actions import (
    Action,
    AnswerWait,
    Deliver,
    OpenGate,
    TrialIsOver,
)
from dispatcher.core.endings import CHAIN_LIMIT, inherited_failure
from dispatcher.core.ids import TrialId
from dispatcher.core.model import FailReason, Outcome, Rule, State, Trial, TrialState, Verdict
from dispatcher.core.moves import let_go, move
from dispatcher.core.stores import ask_for_review


def open_gate(state: State, trial: Trial, verdict: Verdict, out: list[Action]) -> None:
    """Give a trial its verdict. Called only when result and end were delivered, or no trial ever
    was (promise 1).

    The tuner host wakes the waiting threads itself (it has just run ``trial_end``); here the same
    waits are taken off the books, and held children are queued or failed.

    Args:
        state: changed in place.
        trial: ends with this.
        verdict: for its children.
        out: gets answers to waits for a version, deliveries of children that fail with it, and the
            news that the trial is over.
    """
    trial.verdict = verdict
    move(state, trial, TrialState.ENDED)
    trial.parameters = ""
    trial.asked_after = 0
    trial.final = trial.result = trial.restore_path = None
    trial.retried = trial.needs = None
    trial.reads = trial.heard = ()
    trial.asked_serial = trial.place = trial.passed_over = 0
    trigger, state.trigger = state.trigger, Rule.GATE_OPENED
    for waiter_id, wait, answer in waits.released_by(state, trial.id):
        waiter = state.trials[waiter_id]
        if wait.mode == "held":
            _release_held(state, waiter, answer, out)
        elif waiter.state is TrialState.BLOCKED:
            let_go(state, waiter)
            if wait.mode == "version":  # of which the tuner host knows too little
                out.append(version_failed(waiter_id, wait.ticket, answer))
    state.trigger = trigger
    out.append(TrialIsOver(trial.id))
    ask_for_review(state, out)


def version_failed(waiter: TrialId, ticket: int, answer: waits.Answer) -> AnswerWait:
    """The end of a wait for a version by a trial that has ended without one.

    Args:
        waiter: the request that waits.
        ticket: which of its waits.
        answer: with the parent and its verdict.
    """
    assert answer.parent is not None
    assert answer.verdict is not None
    return AnswerWait(
        waiter,
        ticket,
        "failed",
        parent=answer.parent,
        reason=answer.verdict.reason,
        chain=answer.verdict.chain,
    )


def _release_held(state: State, child: Trial, answer: waits.Answer, out: list[Action]) -> None:
    if answer.kind == "granted":
        if child.parent is not None and child.parent in state.removed_weights:
            fail_unstarted(state, child, FailReason.WEIGHTS_GONE, (child.parent,), out)
        else:
            move(state, child, TrialState.QUEUED)
        return
    assert answer.parent is not None
    assert answer.verdict is not None
    fail_unstarted(state, child, FailReason.FAILED, (answer.parent, *answer.verdict.chain), out)


def fail_unstarted(
    state: State,
    child: Trial,
    reason: FailReason,
    chain: tuple[TrialId, ...],
    out: list[Action],
    outcome: Outcome = Outcome.FAILED,
) -> None:
    """End a proposed trial that never got an attempt; the tuner gets ``trial_end(False)``.

    Args:
        state: changed in place.
        child: the trial to be ended.
        reason: for its own children.
        chain: the trials through which the failure came, nearest first.
        out: gets the delivery.
        outcome: as users see it.
    """
    child.outcome = outcome
    child.success = False
    child.verdict_due = Verdict(reason, chain[:CHAIN_LIMIT])
    deliver(state, child, out)


def deliver(state: State, trial: Trial, out: list[Action]) -> None:
    """Put an ended trial in line for the tuner.

    Args:
        state: changed in place.
        trial: with its result and the verdict that is due.
        out: gets the delivery, if the tuner's process is there.
    """
    move(state, trial, TrialState.DELIVERING)
    if state.host_ready:
        out.append(delivery_of(trial))


def delivery_of(trial: Trial) -> Deliver:
    """The one message from which the tuner host does result, end and gate, in this order."""
    assert trial.verdict_due is not None
    return Deliver(
        trial=trial.id,
        parameters=trial.parameters,
        value=trial.result,
        success=trial.success,
        verdict=trial.verdict_due,
        result_delivered=trial.result_delivered,
        by_hand=trial.by_hand,
    )


def end_dropped(state: State, trial: Trial, out: list[Action]) -> None:
    """Handle parameters that nobody will run: they were refused, or their request was killed.

    The tuner gets ``trial_end(False)`` all the same, since others may wait for that in a way of its
    own; to us there never was a trial.

    Args:
        state: changed in place.
        trial: the request that has returned them.
        out: gets the delivery.
    """
    if not state.settings.end_dropped:
        if trial.state is not TrialState.ENDED:
            end_without_trial(state, trial, out)
        return
    waits.erase(state, trial.id)
    trial.outcome = Outcome.NO_TRIAL
    trial.success = False
    trial.kill_reason = trial.verdict = None  # of a request that was killed: it is over only now
    trial.verdict_due = Verdict(FailReason.NO_TRIAL)
    deliver(state, trial, out)


def end_without_trial(
    state: State, trial: Trial, out: list[Action], parent: TrialId | None = None
) -> None:
    """End a request that has no parameters: its place under ``maxTrialNumber`` is free again.

    Args:
        state: changed in place.
        trial: the request.
        out: gets the opening of its gate, and what follows from that.
        parent: the trial whose failure ended the request; None if there is none.
    """
    waits.erase(state, trial.id)
    trial.outcome = Outcome.NO_TRIAL
    if parent is not None and parent in state.trials:
        above = state.trials[parent].verdict or Verdict()
        verdict = inherited_failure(parent, above, FailReason.NO_TRIAL)
    else:
        verdict = Verdict(FailReason.NO_TRIAL)
    out.append(OpenGate(trial.id, verdict))
    open_gate(state, trial, verdict, out)
