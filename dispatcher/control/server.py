"""The head's side of a request: facts for the core, or an answer from the state.

Thread: the engine's, so answers are consistent and must be cheap. A request that changes something
is answered after its commit; a bad request harms nobody but its sender.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from dispatcher.codec import UNREADABLE
from dispatcher.control.imported import results_text
from dispatcher.control.messages import (
    MAX_REQUEST_BYTES,
    ControlRequest,
    ImportArguments,
    NoArguments,
    PieceRead,
    ReadArguments,
    Reply,
    StopArguments,
    StopTrialArguments,
    SubmitArguments,
    UpdateArguments,
    encoder,
    request_decoder,
)
from dispatcher.control.samples import add_samples
from dispatcher.core import State
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import AttemptState, EndReason, Outcome, TrialState
from dispatcher.core.trouble import troubles
from dispatcher.core.why import why
from dispatcher.errors import UserError
from trial_runtime.resource_wire import Samples

#: Trials listed by name in a snapshot; the counts are always whole.
LISTED = 200


class Handled(NamedTuple):
    """Facts to apply, and the reply that leaves once they are committed and it is ``ready``, which
    is asked for in each turn of the engine."""

    events: list[e.Event]
    reply: Callable[[State], bytes]
    ready: Callable[[], bool] = lambda: True


class PendingRead(Protocol):
    """A question that an agent was asked, and its result. Thread: the engine's."""

    def ready(self) -> bool:
        """Whether it was answered, or never will be; true in the end."""
        ...

    def result(self) -> PieceRead:
        """Return what came of it, when it is ready."""
        ...


def _asks_nobody(wanted: ReadArguments) -> PendingRead:
    raise UserError("no agent of this head can be asked for files")


class ControlServer:
    """Carries out the requests of users, one method for each verb.

    A method takes the request, the state and arguments of the verb's own type. Arguments that do
    not fit the type are refused here: they would not fit the journal either.

    Args:
        admit: turns parameters by hand into a ``TrialSubmitted`` with canonical paths; the head's,
            since it knows the experiment file. Raises :class:`UserError`.
        update: turns a key and its value into events; the head's, too. Raises :class:`UserError`.
        clock: seconds since the epoch.
        refused: messages that were refused: by peer, counted by reason.
        step_down: called when another head takes over.
        samples: resource use of trials and devices, by worker.
        read: asks an agent for files of an attempt. Raises :class:`UserError`.
        ways: by which agents reach the head, by worker.
    """

    def __init__(
        self,
        admit: Callable[[dict[str, Any]], e.TrialSubmitted],
        update: Callable[[str, Any], list[e.Event]],
        clock: Callable[[], float] = time.time,
        refused: Callable[[], dict[str, dict[str, int]]] = dict,
        step_down: Callable[[], None] = lambda: None,
        samples: Callable[[], Mapping[str, Samples]] = dict,
        read: Callable[[ReadArguments], PendingRead] = _asks_nobody,
        ways: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._admit = admit
        self._update = update
        self._clock = clock
        self._step_down = step_down
        self._refused = refused
        self._samples = samples
        self._read = read
        self._ways = ways
        self._verbs: dict[str, tuple[type, Callable[[ControlRequest, State, Any], Handled]]] = {
            "ping": (NoArguments, self._ping),
            "step_down": (NoArguments, self._leave_the_lead),
            "snapshot": (NoArguments, self._snapshot),
            "stop": (StopArguments, self._stop),
            "stop_trial": (StopTrialArguments, self._stop_trial),
            "submit": (SubmitArguments, self._submit),
            "update": (UpdateArguments, self._change),
            "import": (ImportArguments, self._import),
            "read_attempt": (ReadArguments, self._read_attempt),
        }

    def receive(self, payload: bytes, state: State) -> Handled:
        """Decode and carry out one request."""
        if len(payload) > MAX_REQUEST_BYTES:
            text = f"a request of {len(payload):,} bytes; {MAX_REQUEST_BYTES:,} are allowed"
            return _refused(0, UserError(text))
        try:
            request = request_decoder.decode(payload)
        except UNREADABLE as error:
            return _refused(0, UserError(f"malformed request: {error}"))
        entry = self._verbs.get(request.verb)
        if entry is None:
            return _refused(request.number, UserError(f"unknown request {request.verb!r}"))
        kind, verb = entry
        try:
            return verb(request, state, msgspec.convert(request.arguments, kind))
        except UserError as error:
            return _refused(request.number, error)
        except msgspec.ValidationError as error:
            return _refused(request.number, UserError(f"malformed {request.verb!r}: {error}"))
        except RecursionError:
            return _refused(request.number, UserError("the arguments are nested too deeply"))

    def _ping(self, request: ControlRequest, state: State, arguments: NoArguments) -> Handled:
        return _answer(request, [], lambda s: {"epoch": s.epoch, "phase": s.phase.value})

    def _leave_the_lead(
        self, request: ControlRequest, state: State, arguments: NoArguments
    ) -> Handled:
        self._step_down()  # after this reply has left
        return _answer(request, [], lambda s: {"epoch": s.epoch})

    def _snapshot(self, request: ControlRequest, state: State, arguments: NoArguments) -> Handled:
        def look(now: State) -> dict[str, Any]:
            seen = snapshot(now, self._clock()) | {"refused": self._refused()}
            ways = self._ways()
            seen["workers"] = [row | {"way": ways.get(row["name"])} for row in seen["workers"]]
            return add_samples(seen, self._samples())

        return _answer(request, [], look)

    def _stop(self, request: ControlRequest, state: State, arguments: StopArguments) -> Handled:
        event = e.StopRequested(arguments.kind, arguments.reason, arguments.grace_s)
        return _answer(request, [event], lambda s: {"phase": s.phase.value})

    def _stop_trial(
        self, request: ControlRequest, state: State, arguments: StopTrialArguments
    ) -> Handled:
        trial = TrialId(arguments.trial)
        if trial not in state.trials:
            raise UserError(f"there is no trial {trial}")
        event = e.TrialStopRequested(trial, EndReason.KILLED)
        before = state.trials[trial].state
        over = before in (TrialState.DELIVERING, TrialState.ENDED)

        def state_after(after: State) -> dict[str, Any]:
            record = after.trials[trial]
            return {
                "state": record.state.value,
                "before": before.value,
                "outcome": record.outcome.value if over and record.outcome is not None else None,
            }

        return _answer(request, [event], state_after)

    def _submit(self, request: ControlRequest, state: State, arguments: SubmitArguments) -> Handled:
        event = self._admit(arguments.parameters)
        number = state.next_id  # the engine applies the event before anything else

        def reply(after: State) -> bytes:
            if after.trials[number].outcome is Outcome.NO_TRIAL:
                error = "these parameters were refused: their paths are taken or lead nowhere"
                hint = "each trial needs a save path of its own; restore from a trial's save path"
                return encoder.encode(Reply(request.number, None, error, hint))
            return encoder.encode(Reply(request.number, {"trial": number}))

        return Handled([event], reply)

    def _change(self, request: ControlRequest, state: State, arguments: UpdateArguments) -> Handled:
        events = self._update(arguments.key, arguments.value)
        return _answer(request, events, lambda s: {"key": arguments.key})

    def _import(self, request: ControlRequest, state: State, arguments: ImportArguments) -> Handled:
        event = e.DataImported(results_text(arguments.rows))
        return _answer(request, [event], lambda s: {"rows": len(arguments.rows)})

    def _read_attempt(
        self, request: ControlRequest, state: State, arguments: ReadArguments
    ) -> Handled:
        pending = self._read(arguments)

        def reply(now: State) -> bytes:
            return encoder.encode(Reply(request.number, pending.result()))

        return Handled([], reply, pending.ready)


def _answer(
    request: ControlRequest, events: list[e.Event], data: Callable[[State], dict[str, Any]]
) -> Handled:
    number = request.number
    return Handled(events, lambda state: encoder.encode(Reply(number, data(state))))


def _refused(number: int, error: UserError) -> Handled:
    message = encoder.encode(Reply(number, None, _plain(error.message), _plain(error.hint)))
    return Handled([], lambda _: message)


def _plain(text: str) -> str:
    """Errors quote what they refuse, lone surrogates (from escapes in YAML) included."""
    return text.encode(errors="backslashreplace").decode()


def snapshot(state: State, now: float) -> dict[str, Any]:
    """Return what ``top`` and ``status`` show: counts, running and waiting trials, and why.

    Args:
        state: the core's state; only read.
        now: seconds since the epoch.
    """
    explanation = why(state, now)
    return {
        "phase": state.phase.value,
        "reason": state.phase_reason,
        "epoch": state.epoch,
        "slots": state.settings.slots,
        "lookahead": state.lookahead,
        "max_trials": state.settings.max_trials,
        "max_duration_s": state.settings.max_duration_s,
        "active_s": state.active_s + (now - state.started_at if state.started_at else 0.0),
        "submitted": state.submitted,
        "ended": state.results_seen,
        "counts": {
            "open": len(state.open),
            "blocked": len(state.blocked),
            "parked": len(state.parked),
            "held": len(state.held),
            "queued": len(state.queued),
            "running": len(state.running),
            "backoff": len(state.backoff),
            "delivering": len(state.delivering),
        },
        "running": [_running(state, t, now) for t in list(state.running)[:LISTED]],
        "waiting": [_waiting(state, t, now) for t in [*state.blocked, *state.held][:LISTED]],
        "open": [
            {"trial": t, "for_s": now - state.trials[t].since} for t in list(state.open)[:LISTED]
        ],
        "workers": [
            {
                "name": w.id,
                "slots": w.slots,
                "busy": len(w.running),
                "alive": w.alive,
                "waiting": w.waiting,
                "waits_s": None if w.waits_since is None else now - w.waits_since,
                "ends_in_s": None
                if not w.alive or w.offer is None or w.offer.ends_at is None
                else max(0.0, w.offer.ends_at - now),
                "way": None,
            }
            for w in state.workers.values()
        ],
        "why": {"cause": explanation.cause.name, "text": explanation.text},
        "troubles": troubles(state, now),
    }


def _running(state: State, trial_id: TrialId, now: float) -> dict[str, Any]:
    trial = state.trials[trial_id]
    doing = trial.attempt_state or AttemptState.STARTING
    return {
        "trial": trial.id,
        "attempt": trial.attempt,
        "state": doing.value,
        "worker": trial.worker,
        "parent": trial.parent,
        "for_s": now - trial.since,
        "last": trial.last_intermediate,
    }


def _waiting(state: State, trial_id: TrialId, now: float) -> dict[str, Any]:
    wait = state.waits[trial_id]
    return {
        "trial": trial_id,
        "mode": wait.mode,
        "place": wait.place,
        "for": sorted(wait.missing)[:20],
        "for_s": now - wait.since,
    }
