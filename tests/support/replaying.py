"""Is what a replay of the journal leads to what the live state is?"""

from __future__ import annotations

import dataclasses
from typing import Any

from dispatcher.core import State

#: Of the moment, not of the experiment: what was touched since the last commit, how it moved.
_IGNORED = ("dirty", "trigger", "trace")


def portrait(state: State) -> dict[str, Any]:
    """All that must be equal in two states, as plain values."""
    found = {
        f.name: getattr(state, f.name)
        for f in dataclasses.fields(state)
        if f.name not in (*_IGNORED, "trials")
    }
    found["trials"] = state.trials
    found["order"] = {
        name: list(getattr(state, name))
        for name in ("open", "parked", "queued", "backoff", "delivering", "running")
    }
    return found


def differences(live: State, replayed: State) -> list[str]:
    """Field by field; empty if a restart would lose nothing."""
    one, other = portrait(live), portrait(replayed)
    found = []
    for name, value in one.items():
        if name == "trials":
            for number in {*value, *other["trials"]}:
                a, b = value.get(number), other["trials"].get(number)
                if a != b:
                    found.append(f"trial {number}: {_fields(a)} became {_fields(b)}")
        elif value != other[name]:
            found.append(f"{name}: {value!r} became {other[name]!r}")
    return found


def _fields(trial: Any) -> dict[str, Any] | None:
    return None if trial is None else dataclasses.asdict(trial)
