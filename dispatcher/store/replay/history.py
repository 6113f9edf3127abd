"""The journal read back: the state it leads to, and the calls its tuner has seen."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from dispatcher.core import State, Step, apply, new_state
from dispatcher.core import events as e
from dispatcher.core.actions import Action, AnswerWait, OpenGate
from dispatcher.errors import BrokenInvariant, InvalidTransition, ProtocolError, StoreError
from dispatcher.ports import Base, Journal, JournalRow
from dispatcher.state_codec import decode_state
from dispatcher.store.early_stops import recall, rows_as_judged


class Past(NamedTuple):
    """The content of a journal: the state after its last row, that row's number, and the calls
    that a restored tuner has to be given."""

    state: State
    row: int
    calls: list[list[Any]]


def replay(journal: Journal, base: Base | None = None) -> tuple[State, int]:
    """Read the state after the last row, and that row's number.

    Raises:
        StoreError: the journal is empty: no experiment was ever created in it.
    """
    past = read_past(journal, base)
    return past.state, past.row


def read_past(
    journal: Journal,
    base: Base | None = None,
    *,
    calls_after: int | None = None,
    upto: int | None = None,
) -> Past:
    """Read the journal once, from its beginning or the base.

    Args:
        journal: read only.
        base: the state to begin with, of a journal that was compacted.
        calls_after: gather the tuner's calls after this row; None gathers none.
        upto: the last row to read; None: all of them.

    Raises:
        StoreError: the journal is empty, or the base cannot be read.
    """
    state: State | None = None
    number = 0
    if base is not None:
        number, state = base.number, state_of(base)
        recall(journal, state)  # what they have reported since is in no row
    calls: list[list[Any]] = []
    refusals = _Refusals()
    for row in rows_as_judged(journal, number):
        if upto is not None and row.number > upto:
            break
        if state is None:
            state = first_state(row.event)
        if calls_after is None or row.number <= calls_after:
            _apply(journal, state, row)
        else:
            call = _call_before(state, row.event)
            step = _apply(journal, state, row)
            if step.counted and call is not None:
                if call[0] == "generate":
                    calls.extend(refusals.of(call[1]))
                calls.append(call)
            refusals.take(row.event, step.actions)
            calls.extend(_gates_of(step.actions))
        number = row.number
    if state is None:
        raise StoreError("the journal is empty", hint="create the experiment again")
    recall(journal, state)
    state.dirty.clear()
    return Past(state, number, calls)


def _apply(journal: Journal, state: State, row: JournalRow) -> Step:
    try:
        return apply(state, row.event, row.at)
    except (InvalidTransition, BrokenInvariant) as error:
        trial = getattr(row.event, "trial", None)
        about = "" if trial is None else f" --trial {trial}"
        error.where = f"row {row.number} of the journal"
        command = f"bequeath experiment replay {shlex.quote(str(journal.folder))}"
        error.hint = f"see what led to it with: {command} --until {row.number}{about}"
        raise


class _Refusals:
    """Waits that the head refused, of requests that are open: a repetition cannot know them
    from the calls. ``["refused", id, parents, mode, store, version, kind, parent, reason, chain]``,
    before the request that they belong to."""

    def __init__(self) -> None:
        self._waits: dict[int, e.WaitStarted] = {}  # the newest of each
        self._calls: dict[int, list[list[Any]]] = {}

    def take(self, event: e.Event, actions: list[Action]) -> None:
        """Take in an applied event and the actions that it caused."""
        if isinstance(event, e.TunerHostLost | e.TunerHostReady | e.HeadStarted):
            self._waits.clear()  # of requests that are asked again from their beginning
            self._calls.clear()
        elif isinstance(event, e.WaitStarted):
            self._waits[event.trial] = event
        for action in actions:
            if isinstance(action, AnswerWait) and action.kind != "granted":
                self._refused(action)
        if isinstance(event, e.RequestFailed):
            self.of(event.trial)

    def _refused(self, answer: AnswerWait) -> None:
        wait = self._waits.get(answer.trial)
        if wait is None or wait.ticket != answer.ticket:
            return
        if answer.kind == "self" or (answer.kind == "failed" and wait.mode != "version"):
            return  # as the tuner host finds by itself: by the gate of a parent, which is repeated
        asked = [list(wait.parents), wait.mode, wait.store, wait.version]
        reason = "" if answer.reason is None else answer.reason.value
        answered = [answer.kind, answer.parent, reason, list(answer.chain)]
        self._calls.setdefault(answer.trial, []).append(
            ["refused", answer.trial, *asked, *answered]
        )

    def of(self, trial: int) -> list[list[Any]]:
        """Return the refusals of a request that is over, and forget them."""
        self._waits.pop(trial, None)
        return self._calls.pop(trial, [])


def _gates_of(actions: list[Action]) -> Iterator[list[Any]]:
    """Yield ``["gate", id, reason, chain]`` for each request that ended without a trial, whatever
    ended it: others may have waited for it."""
    for action in actions:
        if isinstance(action, OpenGate):
            yield ["gate", action.trial, action.verdict.reason, list(action.verdict.chain)]


def state_of(base: Base) -> State:
    """Return the state that a base holds.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return decode_state(base.parts)
    except ProtocolError as error:
        raise StoreError(
            f"the state kept as of row {base.number} cannot be read: {error.message}",
            hint="it was written by a newer bequeath, or damaged: restore it from a backup",
        ) from error


def first_state(event: e.Event) -> State:
    """Return the state before the first event of a journal.

    Raises:
        StoreError: no journal begins with such an event.
    """
    if not isinstance(event, e.ExperimentCreated):
        raise StoreError(f"the journal begins with {type(event).__name__}")
    return new_state(event.settings)


def _call_before(state: State, event: e.Event) -> list[Any] | None:
    """``["generate", id, parameters]``, ``["result", id, parameters, value]``, ``["end", id,
    success, gate open]`` or ``["import", number, data]``, if the event is the end of one, and
    ``["version", id, store, number]`` of what a trial has published; parameters, value and data
    are JSON texts. Asked before the event is applied, which drops them."""
    match event:
        case e.Proposed(trial=trial, parameters=parameters):
            return ["generate", trial, parameters]
        case e.RequestFailed(trial=trial, kind=e.RequestEnd.NONSENSE) if state.settings.end_dropped:
            return ["generate", trial, None]  # an end of it may follow
        case e.ResultDelivered(trial=number):
            trial_record = state.trials[number]
            return ["result", number, trial_record.parameters, trial_record.result]
        case e.EndDelivered(trial=number):
            trial_record = state.trials[number]
            due = trial_record.verdict_due
            return ["end", number, trial_record.success, due is not None and due.ok]
        case e.VersionOffered(trial=trial, store=store, base=base):
            return ["version", trial, store, base + 1]
        case e.ImportDelivered(number=which) if which in state.imports:
            return ["import", which, state.imports[which]]
        case _:
            return None
