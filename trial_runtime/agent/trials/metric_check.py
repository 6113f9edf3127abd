"""The check of metrics that a trial sent: its library checks them, but any code may send.

A metric that passes is decoded by the journal's writer, the tuner host and the command line, so
none may pass on which one of them would fail.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trial_runtime.trial_wire import UNREADABLE

#: As in the library of trials, plus one for the top level.
_DEEPEST = 9

_decoder = msgspec.json.Decoder()


def metric_fault(text: str, limit: int, *, any_value: bool = False) -> str:
    """The fault of a metric; empty if it has none.

    Args:
        text: the metric as JSON.
        limit: its largest size in bytes.
        any_value: accept any JSON value, as tuners written for NNI can read.
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
