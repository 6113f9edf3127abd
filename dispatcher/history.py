"""The journal read back: the state it leads to, and the calls its tuner has seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dispatcher.core import State, apply, new_state
from dispatcher.core import events as e
from dispatcher.errors import StoreError
from dispatcher.ports import Journal, JournalRow


def replay(journal: Journal) -> tuple[State, int]:
    """The state after the last row, and that row's number.

    Raises:
        StoreError: the journal is empty: no experiment was ever created in it.
    """
    state: State | None = None
    number = 0
    for row in journal.rows():
        state = _step(state, row)
        number = row.number
    if state is None:
        raise StoreError("the journal is empty", hint="create the experiment again")
    for (trial_id, attempt), (seq, value) in journal.last_sequences().items():
        trial = state.trials.get(trial_id)  # type: ignore[call-overload]
        if trial is not None and trial.attempt == attempt:
            trial.last_seq = max(trial.last_seq, seq)
            trial.last_intermediate = value
    state.dirty.clear()
    return state, number


def _step(state: State | None, row: JournalRow) -> State:
    if state is None:
        if not isinstance(row.event, e.ExperimentCreated):
            raise StoreError(f"the journal begins with {type(row.event).__name__}")
        state = new_state(row.event.settings)
    apply(state, row.event, row.at)
    return state


def tuner_calls(rows: Iterable[JournalRow], after: int = 0) -> list[list[Any]]:
    """What the tuner was asked and told after row ``after``, in the order of the journal.

    ``["generate", id, parameters]``, ``["result", id, parameters, value]``,
    ``["end", id, success, gate open]``; parameters and value are JSON texts.
    """
    calls: list[list[Any]] = []
    state: State | None = None
    for row in rows:
        call = _call_before(state, row.event) if state is not None else None
        if state is None:
            state = _step(state, row)
            continue
        step = apply(state, row.event, row.at)
        if call is not None and step.counted and row.number > after:
            calls.append(call)
    return calls


def _call_before(state: State, event: e.Event) -> list[Any] | None:
    match event:
        case e.Proposed(trial=trial, parameters=parameters):
            return ["generate", trial, parameters]
        case e.ResultDelivered(trial=number):
            trial_record = state.trials[number]
            return ["result", number, trial_record.parameters, trial_record.told]
        case e.EndDelivered(trial=number):
            trial_record = state.trials[number]
            due = trial_record.verdict_due
            return ["end", number, trial_record.success, due is not None and due.ok]
        case _:
            return None
