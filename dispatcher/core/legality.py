"""Legality of events: the one place that reads the catalogue's columns on states."""

from collections.abc import Mapping

from dispatcher.core import events as e
from dispatcher.core.events.row import EventRow
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import Outcome, State, Trial, TrialState
from dispatcher.errors import InvalidTransition


def counts(state: State, event: e.Event, row: EventRow) -> bool:
    """Whether an event has its effect (else it comes late).

    Args:
        state: not changed.
        event: what happened.
        row: of the event, in the catalogue.

    Raises:
        InvalidTransition: the event is not legal in this state.
    """
    if not row.legal:
        return True
    kind = type(event)
    trial = state.trials.get(event.trial)  # type: ignore[union-attr]
    if trial is None:
        raise InvalidTransition(f"{kind.__name__} names trial {event.trial}, which is not")  # type: ignore[union-attr]
    if kind in e.OF_ATTEMPTS and event.attempt != trial.attempt:  # type: ignore[union-attr]
        return False  # promise 3: one attempt is believed
    if row.of_host and not state.host_ready:
        return False
    if trial.state in row.legal:
        reason = objection(trial, event)
        if reason:
            raise InvalidTransition(f"trial {trial.id} cannot take {kind.__name__}: {reason}")
        return True
    if row.after_kill and _comes_of_a_kill(trial, event):
        return True
    if trial.state in row.late:
        return False
    raise InvalidTransition(
        f"trial {trial.id} cannot take {kind.__name__} while {trial.state.name}"
    )


def _comes_of_a_kill(trial: Trial, event: e.Event) -> bool:
    """Whether this is the answer of a request that was killed before."""
    if trial.state is not TrialState.ENDED or trial.outcome is not Outcome.NO_TRIAL:
        return False
    if isinstance(event, e.RequestFailed) and event.kind is not e.RequestEnd.NONSENSE:
        return False
    return trial.kill_reason is not None


def objection(trial: Trial, event: e.Event) -> str:
    """Why a trial in a legal state cannot take the event all the same; empty if it can.

    Result, then end, then gate, each once: DELIVERING is one state for both calls, so their order
    is checked here (promises 1 and 2).
    """
    owed = trial.result is not None and not trial.result_delivered
    if isinstance(event, e.ResultDelivered) and not owed:
        return "its result was delivered before" if trial.result_delivered else "it has no result"
    if isinstance(event, e.EndDelivered) and owed:
        return "its result was not delivered yet (promise 1)"
    return ""


def worker_of(trials: Mapping[TrialId, Trial], event: e.Event) -> WorkerId | None:
    """The worker of the attempt of which the event speaks, as long as that attempt is the one that
    is believed: its trial's record names it, and the event does not."""
    if type(event) not in e.OF_ATTEMPTS:
        return None
    trial = trials.get(event.trial)  # type: ignore[union-attr]
    return None if trial is None or trial.attempt != event.attempt else trial.worker  # type: ignore[union-attr]
