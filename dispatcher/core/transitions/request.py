"""Reports of the tuner host: waits, proposals, failures, deliveries."""

from typing import Final

from dispatcher.core import events as e
from dispatcher.core import stores, waits
from dispatcher.core.actions import Action, AnswerWait, ReportTunerError
from dispatcher.core.claims import claim, owner_of
from dispatcher.core.failures import telling_line
from dispatcher.core.gates import (
    end_dropped,
    end_without_trial,
    fail_unstarted,
    open_gate,
    version_failed,
)
from dispatcher.core.ids import TrialId
from dispatcher.core.model import FailReason, Phase, State, Trial, TrialState, Verdict
from dispatcher.core.moves import move
from dispatcher.core.settings import REQUEST_RETRIES, TUNER_ERRORS_IN_A_ROW, TunerErrorPolicy
from dispatcher.core.transitions import Effects, quiet
from dispatcher.core.transitions.store import awaited_version


def wait_started(state: State, event: e.WaitStarted, out: list[Action]) -> None:
    """Answer at once where that is possible, else draw the edges.

    Args:
        state: changed in place.
        event: of an open request.
        out: gets the answer, if it is known already.
    """
    trial = state.trials[event.trial]
    if trial.state is TrialState.BLOCKED:  # a foreign wait whose end was not reported
        waits.erase(state, trial.id)
        move(state, trial, TrialState.OPEN)
    if event.answered:
        return
    answer = _immediate_answer(state, event)
    if answer is not None:
        out.append(answer)
        return
    waits.draw(state, trial.id, event.ticket, event.parents, event.mode, event.store, event.version)
    move(state, trial, TrialState.BLOCKED)


def _immediate_answer(state: State, event: e.WaitStarted) -> AnswerWait | None:
    if event.trial in event.parents:
        return AnswerWait(event.trial, event.ticket, "self", parent=event.trial)
    for parent in event.parents:
        if parent not in state.trials:
            return AnswerWait(event.trial, event.ticket, "unknown", parent=parent)
    if event.mode == "version":
        return _answer_of_version(state, event)
    resolved = waits.resolve(event.parents, event.mode, lambda p: state.trials[p].verdict)
    if resolved.kind == "granted":
        ready = tuple(p for p in event.parents if (v := state.trials[p].verdict) and v.ok)
        return AnswerWait(event.trial, event.ticket, "granted", parents=ready)
    if resolved.kind == "failed":
        assert resolved.verdict is not None
        return AnswerWait(
            event.trial,
            event.ticket,
            "failed",
            parent=resolved.parent,
            reason=resolved.verdict.reason,
            chain=resolved.verdict.chain,
        )
    cycle = waits.find_cycle(state, event.trial, event.parents)
    if cycle is not None:
        return AnswerWait(event.trial, event.ticket, "cycle", chain=cycle)
    return None


def _answer_of_version(state: State, event: e.WaitStarted) -> AnswerWait | None:
    known = awaited_version(state, event)
    if known is not None:
        return known
    for publisher in event.parents:
        verdict = state.trials[publisher].verdict
        if verdict is not None:
            failure = verdict if not verdict.ok else Verdict(FailReason.NO_VERSION)
            failed = waits.Answer("failed", publisher, failure)
            return version_failed(event.trial, event.ticket, failed)
    cycle = waits.find_cycle(state, event.trial, event.parents)
    if cycle is not None:
        return AnswerWait(event.trial, event.ticket, "cycle", chain=cycle)
    return None


def wait_given_up(state: State, event: e.WaitGivenUp) -> bool:
    """Open the request again: its thread goes on without our answer. Late if it is in another wait
    already."""
    wait = state.waits.get(event.trial)
    if wait is None or wait.ticket != event.ticket:
        return False
    waits.erase(state, event.trial)
    move(state, state.trials[event.trial], TrialState.OPEN)
    return True


def foreign_wait_seen(state: State, event: e.ForeignWaitSeen) -> None:
    """Block the request: a thread that stands still holds no slot, whatever it stands in."""
    waits.draw(state, event.trial, 0, (), "foreign")
    state.waits[event.trial].place = event.place
    move(state, state.trials[event.trial], TrialState.BLOCKED)


def foreign_wait_over(state: State, event: e.ForeignWaitOver) -> bool:
    """Open the request again. Late if it is in a wait of ours by now."""
    wait = state.waits.get(event.trial)
    if wait is None or wait.mode != "foreign":
        return False
    waits.erase(state, event.trial)
    move(state, state.trials[event.trial], TrialState.OPEN)
    return True


def proposed(state: State, event: e.Proposed, out: list[Action]) -> None:
    """Take parameters in: claim the save path, find the parent, queue or hold the trial.

    Args:
        state: changed in place.
        event: of an open request, or of one that was killed meanwhile.
        out: gets the tuner's error if the proposal is refused.
    """
    trial = state.trials[event.trial]
    if trial.state is TrialState.ENDED:  # its request was killed
        end_dropped(state, trial, out)
        return
    waits.erase(state, trial.id)
    refusal = admit(state, trial, event, out)
    if refusal is None:
        state.submitted += 1
        state.tuner_errors_in_a_row = 0
        state.abandoned_in_a_row = 0
        stores.ask_for_review(state, out)
        return
    out.append(ReportTunerError(trial.id, "generate_parameters", refusal))
    _request_error(state, trial, refusal, out, returned=True)


def admit(
    state: State, trial: Trial, event: e.Proposed | e.TrialSubmitted, out: list[Action]
) -> str | None:
    """Take a proposal in, or return the sentence that refuses it (nothing has changed then).

    Args:
        state: changed in place, unless the proposal is refused.
        trial: its record, still without parameters.
        event: the proposal.
        out: gets the delivery of a trial whose parent has failed already.
    """
    save_path, restore_path = event.save_path, event.restore_path
    parent: TrialId | None = None
    started_from = None if restore_path is None else stores.read_version(restore_path)
    if started_from is None and restore_path is not None and not restore_path.startswith("/"):
        if save_path is not None and f"{restore_path}/".startswith(f"{save_path}/"):
            return f"trial {trial.id} would restore from its own save path {save_path!r}"
        parent = owner_of(state, restore_path)
        if parent is None:
            return (
                f"restore path {restore_path!r} is no trial's save path: a parent is proposed "
                "before its child, who may wait_for it; pretrained weights belong under a folder "
                "named in weightsReadRoots"
            )
    unknown = stores.unknown(state, event.reads)
    if unknown is not None:
        return unknown
    if save_path is not None:
        refusal = claim(state, trial.id, save_path)
        if refusal is not None:
            return refusal
    trial.parameters = event.parameters
    trial.save_path = save_path
    trial.restore_path = restore_path
    trial.parent = parent
    trial.needs = event.needs
    trial.reads = event.reads
    _enqueue(state, trial, out)
    return None


def _enqueue(state: State, trial: Trial, out: list[Action]) -> None:
    parent = trial.parent
    if parent is None:
        move(state, trial, TrialState.QUEUED)
        return
    verdict = state.trials[parent].verdict
    if verdict is None:
        # Promise 1: the author proposed a child before its parent ended. It is held, unless
        # the parent itself waits for this trial.
        cycle = waits.find_cycle(state, trial.id, (parent,))
        if cycle is not None:
            fail_unstarted(state, trial, FailReason.FAILED, cycle, out)
            return
        waits.draw(state, trial.id, 0, (parent,), "held")
        move(state, trial, TrialState.HELD)
    elif not verdict.ok:
        fail_unstarted(state, trial, FailReason.FAILED, (parent, *verdict.chain), out)
    elif parent in state.removed_weights:
        fail_unstarted(state, trial, FailReason.WEIGHTS_GONE, (parent,), out)
    else:
        move(state, trial, TrialState.QUEUED)


def request_failed(state: State, event: e.RequestFailed, out: list[Action]) -> None:
    """End or park a request that has returned no parameters, by the kind of its end.

    Args:
        state: changed in place.
        event: ``kind`` decides what follows.
        out: gets the tuner's error, if it is one, and the opening of the request's gate.
    """
    trial = state.trials[event.trial]
    if trial.state is TrialState.ENDED:  # it was killed, and has returned nonsense since
        end_dropped(state, trial, out)
        return
    waits.erase(state, trial.id)
    match event.kind:
        case e.RequestEnd.NOT_NOW:
            move(state, trial, TrialState.PARKED)
        case e.RequestEnd.ABANDONED | e.RequestEnd.CANCELLED:
            if event.kind is e.RequestEnd.ABANDONED:
                state.abandoned_in_a_row += 1
                state.abandoned_text = telling_line(event.text)
            end_without_trial(state, trial, out, event.parent)
        case e.RequestEnd.ERROR | e.RequestEnd.NONSENSE:
            out.append(ReportTunerError(trial.id, "generate_parameters", event.text))
            returned = event.kind is e.RequestEnd.NONSENSE
            _request_error(state, trial, event.text, out, returned=returned)


def _request_error(
    state: State, trial: Trial, text: str, out: list[Action], *, returned: bool
) -> None:
    state.tuner_errors_in_a_row += 1
    trial.tuner_errors += 1
    if (
        state.settings.on_tuner_error is TunerErrorPolicy.RETRY
        and trial.tuner_errors <= REQUEST_RETRIES
        and state.tuner_errors_in_a_row < TUNER_ERRORS_IN_A_ROW
    ):
        trial.asked_after = -1  # to be asked again at once
        move(state, trial, TrialState.PARKED)
        return
    if returned:
        end_dropped(state, trial, out)
    else:
        end_without_trial(state, trial, out)
    tuner_error(state, "generate_parameters", text)


def tuner_error(state: State, method: str, text: str) -> None:
    """Decide on the rest of the experiment after an exception of the tuner.

    Args:
        state: changed in place; the experiment may begin to drain.
        method: the tuner's, such as ``trial_end``.
        text: the traceback; its last line becomes part of the reason.
    """
    last = text.strip().rsplit("\n", 1)[-1]
    if state.phase is not Phase.RUNNING:
        return
    if state.settings.on_tuner_error is TunerErrorPolicy.FAIL:
        reason = f"the tuner raised in {method}: {last}"
    elif state.tuner_errors_in_a_row >= TUNER_ERRORS_IN_A_ROW:
        reason = f"the tuner raised {state.tuner_errors_in_a_row} times in a row; last: {last}"
    else:
        return
    state.phase = Phase.DRAINING  # what runs may finish: its results are worth keeping
    state.over_phase = Phase.FAILED
    state.phase_reason = reason


def result_delivered(state: State, event: e.ResultDelivered, out: list[Action]) -> None:
    """Note that the tuner has taken a result: a host that starts again does not get it a second
    time (promise 2).

    Args:
        state: changed in place.
        event: ``error`` is the tuner's traceback, if it raised.
        out: gets that error.
    """
    trial = state.trials[event.trial]
    trial.result_delivered = True
    _taken(state)
    state.dirty[trial.id] = None
    if event.error:
        _delivery_error(state, trial, "receive_trial_result", event.error, out)


def _taken(state: State) -> None:
    """Begin the clock of a drain anew: a call of the tuner has returned."""
    if state.phase is Phase.DRAINING:
        state.quiet_since = state.fail_at = None


def delivery_stands_still(state: State, event: e.DeliveryStandsStill) -> None:
    """Note that a delivery stands still, or moves again, and where: for those who ask why nothing
    goes on."""
    trial = state.trials[event.trial]
    trial.delivery_still = not event.over
    state.still_since, state.still_at = state.now, event.at


def end_delivered(state: State, event: e.EndDelivered, out: list[Action]) -> None:
    """Open the gate after result and end; it opens here and nowhere earlier (promise 1).

    Args:
        state: changed in place.
        event: ``error`` is the tuner's traceback, if it raised.
        out: gets that error, and what the opening of the gate brings.
    """
    trial = state.trials[event.trial]
    assert trial.verdict_due is not None
    state.results_seen += 1
    _taken(state)
    state.abandoned_in_a_row = 0
    state.host_restarts = 0
    if event.error:
        _delivery_error(state, trial, "trial_end", event.error, out)
    open_gate(state, trial, trial.verdict_due, out)


def _delivery_error(state: State, trial: Trial, method: str, text: str, out: list[Action]) -> None:
    out.append(ReportTunerError(trial.id, method, text))
    state.tuner_errors_in_a_row += 1
    tuner_error(state, method, text)


EFFECTS: Final[Effects] = {
    e.WaitStarted: wait_started,
    e.WaitGivenUp: quiet(wait_given_up),
    e.ForeignWaitSeen: quiet(foreign_wait_seen),
    e.ForeignWaitOver: quiet(foreign_wait_over),
    e.Proposed: proposed,
    e.RequestFailed: request_failed,
    e.ResultDelivered: result_delivered,
    e.DeliveryStandsStill: quiet(delivery_stands_still),
    e.EndDelivered: end_delivered,
}
