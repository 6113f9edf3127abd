"""Durations, sizes, numbers and parameters as text for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dispatcher.safe_text import safe_text

if TYPE_CHECKING:
    from dispatcher.queries import TrialSummary

NOTHING = "–"


def duration(seconds: float | None) -> str:
    """Return a length of time in its two largest units.

    >>> duration(0.25), duration(42), duration(133), duration(90_000)
    ('0.2 s', '42 s', '2m 13s', '1d 1h')
    """
    if seconds is None:
        return NOTHING
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < 86_400:
        return f"{whole // 3600}h {whole % 3600 // 60:02}m"
    return f"{whole // 86_400}d {whole % 86_400 // 3600}h"


def size(nbytes: float | None) -> str:
    """Return an amount of bytes, in powers of 1024.

    >>> size(0), size(1536), size(3 << 30)
    ('0 B', '1.5 KiB', '3.0 GiB')
    """
    if nbytes is None:
        return NOTHING
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} TiB"


def number(value: float | None) -> str:
    """Return a metric with six digits, which are enough to tell trials apart.

    >>> number(0.98123456), number(3), number(None)
    ('0.981235', '3', '–')
    """
    return NOTHING if value is None else f"{value:.6g}"


def moment(at: float | None) -> str:
    """Return a point in time, in UTC."""
    if at is None:
        return NOTHING
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def count(many: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "trial"), count(3, "trial")
    ('1 trial', '3 trials')
    """
    return f"{many} {noun}{'' if many == 1 else 's'}"


def outcomes(counts: Mapping[str, int]) -> str:
    """Return the numbers of trials by outcome; requests that never became a trial come last.

    >>> outcomes({"succeeded": 3, "no trial": 1})
    '3 succeeded (1 more request ended without a trial)'
    """
    parts = [f"{many} {word}" for word, many in counts.items() if many and word != "no trial"]
    without = counts.get("no trial")
    beside = f"{count(without, 'more request')} ended without a trial" if without else ""
    if not parts:
        return beside
    return f"{', '.join(parts)} ({beside})" if beside else ", ".join(parts)


def _listed(item: Any) -> str:
    """Return an entry of a list, such as a block of a network: ``(op=conv width=32)``."""
    if isinstance(item, Mapping) and item and "_name" not in item:
        return f"({parameters(item)})"
    return value(item)


def value(anything: Any) -> str:
    """Return a parameter or metric on one line."""
    if isinstance(anything, str):
        return safe_text(anything)
    if type(anything) is int:
        return str(anything)
    if isinstance(anything, float):
        return number(anything)
    if isinstance(anything, Mapping) and "_name" in anything:
        rest = {key: item for key, item in anything.items() if key != "_name"}
        inside = f"({parameters(rest)})" if rest else ""
        return f"{safe_text(str(anything['_name']))}{inside}"
    if isinstance(anything, list):
        return "[" + ", ".join(map(_listed, anything)) + "]"
    return safe_text(json.dumps(anything, ensure_ascii=False))


def parameters(values: Mapping[str, Any]) -> str:
    """Return parameters on one line: ``lr=0.01 width=64``."""
    return " ".join(
        [
            # Most are such numbers, and there are a hundred thousand of them in a table.
            f"{safe_text(key)}={f'{item:.6g}' if type(item) is float else value(item)}"
            for key, item in values.items()
        ]
    )


def parameters_of(trial: TrialSummary) -> str:
    """Return a trial's parameters on one line, without those that are only paths of weights."""
    own, named = trial.save_path, trial.named_parameters
    if own is not None or "_path" in " ".join(named):
        named = {
            key: item
            for key, item in named.items()
            if not key.endswith("_path") and (item is None or item != own)
        }
    return parameters(named)
