"""Events and trials in a line each, for whoever reads how a trial came to stand where it stands."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any

import msgspec

from dispatcher.core.events import Event
from dispatcher.core.ids import TrialId
from dispatcher.core.model import State, Trial

#: Characters of one field in a line.
FIELD_CHARACTERS = 80


def plain(value: object) -> dict[str, Any]:
    """Return the fields of an event or record that differ from their defaults, as plain values."""
    return {
        field.name: msgspec.to_builtins(getattr(value, field.name), str_keys=True)
        for field in fields(value)  # type: ignore[arg-type]
        if not _is_default(field, getattr(value, field.name))
    }


def _is_default(field: Any, value: object) -> bool:
    if field.default_factory is not MISSING:
        return bool(value == field.default_factory())
    return field.default is not MISSING and bool(value == field.default)


def event_text(event: Event, trial: TrialId | None = None) -> str:
    """Return an event in a line: ``AttemptEnded attempt=1 reason=lost``. It names its trial unless
    that is ``trial``."""
    values = plain(event)
    if trial is not None and values.get("trial") == trial:
        del values["trial"]
    return " ".join([type(event).__name__, *(f"{k}={_shortened(v)}" for k, v in values.items())])


def _shortened(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= FIELD_CHARACTERS else f"{text[:FIELD_CHARACTERS]}…"


def trial_text(state: State, number: TrialId) -> str:
    """Return where a trial stands at the state's own time: ``RUNNING for 12.4 s, attempt 2
    (running) on local; no result, gate closed``."""
    trial = state.trials.get(number)
    if trial is None:
        return "is not there"
    where = f"{trial.state.name} for {max(0.0, state.now - trial.since):.1f} s"
    return f"{where}{_attempt_text(trial)}; {_result_text(trial)}, {_gate_text(trial)}"


def _attempt_text(trial: Trial) -> str:
    if not trial.attempt:
        return ""
    how = "" if trial.attempt_state is None else f" ({trial.attempt_state.value})"
    worker = "" if trial.worker is None else f" on {trial.worker}"
    kill = "" if trial.kill_reason is None else f", to be ended ({trial.kill_reason.value})"
    counts = {"failures": trial.failures, "losses": trial.losses}
    spent = "".join(f", {name} {many}" for name, many in counts.items() if many)
    return f", attempt {trial.attempt}{how}{worker}{kill}{spent}"


def _result_text(trial: Trial) -> str:
    parts = [] if trial.outcome is None else [trial.outcome.value]
    result = trial.result if trial.result is not None else trial.final
    if result is not None:
        parts.append(f"result {_shortened(result)}")
    if trial.result_delivered:
        parts.append("delivered")
    return ", ".join(parts) or "no result"  # an ended trial's is in the read model only


def _gate_text(trial: Trial) -> str:
    if trial.verdict is None:
        return "gate closed"
    reason = trial.verdict.reason
    return "gate open" if reason is None else f"gate failed ({reason.value})"
