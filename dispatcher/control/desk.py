"""The head's side of a request: facts for the core, or an answer from the state.

Thread: the engine's, so answers are consistent and must be cheap. What changes something
is answered after its commit; a bad request harms nobody but its sender.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from dispatcher.control.messages import Reply, Request, encoder, request_decoder
from dispatcher.core import State
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import AttemptState, EndReason, Outcome
from dispatcher.core.why import why
from dispatcher.errors import UserError

#: Trials listed by name in a snapshot; the counts are always whole.
LISTED = 200


class Handled(NamedTuple):
    """Facts to apply, and the reply that leaves once they are committed."""

    events: list[e.Event]
    reply: Callable[[State], bytes]


class Desk:
    """Verbs are public methods that take the state and the request's arguments.

    ``admit`` turns parameters by hand into a ``TrialSubmitted`` (canonical paths), ``update``
    a key and value into events; both raise :class:`UserError`. They are the head's, since
    they know the experiment file.
    """

    def __init__(
        self,
        admit: Callable[[dict[str, Any]], e.TrialSubmitted],
        update: Callable[[str, Any], list[e.Event]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._admit = admit
        self._update = update
        self._clock = clock
        self._verbs: dict[str, Callable[..., Handled]] = {
            "ping": self._ping,
            "snapshot": self._snapshot,
            "stop": self._stop,
            "stop_trial": self._stop_trial,
            "submit": self._submit,
            "update": self._change,
        }

    def receive(self, payload: bytes, state: State) -> Handled:
        """Decode and carry out one request."""
        try:
            request = request_decoder.decode(payload)
        except msgspec.MsgspecError as error:
            return _refused(0, UserError(f"malformed request: {error}"))
        verb = self._verbs.get(request.verb)
        if verb is None:
            return _refused(request.number, UserError(f"unknown request {request.verb!r}"))
        try:
            return verb(request, state, **request.arguments)
        except UserError as error:
            return _refused(request.number, error)
        except TypeError as error:
            return _refused(request.number, UserError(f"malformed {request.verb!r}: {error}"))

    def _ping(self, request: Request, state: State) -> Handled:
        return _answer(request, [], lambda s: {"epoch": s.epoch, "phase": s.phase.value})

    def _snapshot(self, request: Request, state: State) -> Handled:
        return _answer(request, [], lambda s: snapshot(s, self._clock()))

    def _stop(
        self, request: Request, state: State, kind: str, reason: str, grace_s: float | None = None
    ) -> Handled:
        event = e.StopRequested(e.StopKind(kind), reason, grace_s)
        return _answer(request, [event], lambda s: {"phase": s.phase.value})

    def _stop_trial(self, request: Request, state: State, trial: int) -> Handled:
        if trial not in state.trials:
            raise UserError(f"there is no trial {trial}")
        event = e.TrialStopRequested(TrialId(trial), EndReason.KILLED)
        return _answer(request, [event], lambda s: {"state": s.trials[TrialId(trial)].state.value})

    def _submit(self, request: Request, state: State, parameters: dict[str, Any]) -> Handled:
        event = self._admit(parameters)
        number = state.next_id  # the engine applies the event before anything else

        def reply(after: State) -> bytes:
            if after.trials[number].outcome is Outcome.NO_TRIAL:
                error = "these parameters were refused: their paths are taken or lead nowhere"
                hint = "each trial needs a save path of its own; restore from a trial's save path"
                return encoder.encode(Reply(request.number, None, error, hint))
            return encoder.encode(Reply(request.number, {"trial": number}))

        return Handled([event], reply)

    def _change(self, request: Request, state: State, key: str, value: Any) -> Handled:
        return _answer(request, self._update(key, value), lambda s: {"key": key})


def _answer(
    request: Request, events: list[e.Event], data: Callable[[State], dict[str, Any]]
) -> Handled:
    number = request.number
    return Handled(events, lambda state: encoder.encode(Reply(number, data(state))))


def _refused(number: int, error: UserError) -> Handled:
    message = encoder.encode(Reply(number, None, error.message, error.hint))
    return Handled([], lambda _: message)


def snapshot(state: State, now: float) -> dict[str, Any]:
    """What ``top`` and ``status`` show: counts, who runs, who waits for whom, and why."""
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
            {"name": w.id, "slots": w.slots, "busy": len(w.running), "alive": w.alive}
            for w in state.workers.values()
        ],
        "why": {"cause": explanation.cause.name, "text": explanation.text},
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
        "for": sorted(wait.missing)[:20],
        "for_s": now - wait.since,
    }
