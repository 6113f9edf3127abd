"""Whether a metric that a trial sent is one: its library checks, but anybody may send.

What passes here is decoded by the journal's writer, the tuner host and the command line, so
that nothing may pass on which one of them would stumble.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trial_runtime.trial_wire import UNREADABLE

#: As the library of trials has it, plus one for what it calls the top.
_DEEPEST = 9

_decoder = msgspec.json.Decoder()


def metric_fault(text: str, limit: int, *, any_value: bool = False) -> str:
    """What is wrong with the JSON text of a metric of at most ``limit`` bytes, or ''.

    ``any_value``: it may be any JSON value, as tuners written for NNI can read.
    """
    if len(text) > limit or len(text.encode()) > limit:
        return f"a metric of {len(text):,} characters; {limit:,} bytes are allowed"
    try:
        value = _decoder.decode(text)
    except UNREADABLE:
        return "a metric that is not JSON"
    if any_value:
        return "" if _fits(value, 0) else "a metric that nobody can hold"
    if isinstance(value, dict):
        if not _fits(value, 0):
            return "a metric nested too deeply, or with a number that nobody can hold"
        value = value.get("default")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "a metric without a number"
    return "" if _fits(value, 0) else "a metric that nobody can hold"


def _fits(value: Any, depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    if isinstance(value, dict):
        return all(_fits(inner, depth + 1) for inner in value.values())
    if isinstance(value, list):
        return all(_fits(inner, depth + 1) for inner in value)
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 64
