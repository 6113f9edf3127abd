"""Durations as people write them: ``10m``, ``0.5h``, ``1h30m``, ``90`` (seconds)."""

from __future__ import annotations

import math
import re

UNITS_S: dict[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

_PART = re.compile(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)\s*([a-z]*)", re.IGNORECASE)
_EXAMPLES = "write it as '90s', '10m', '0.5h', '1h30m', '2d' or a number of seconds"


def parse_duration(value: object) -> float:
    """Return the seconds that ``value`` stands for.

    Numbers and bare numbers in quotes are seconds; parts with units add up
    (``1h30m``). Units: ms, s, m, h, d, w.

    Raises:
        ValueError: not a duration, negative, or not finite; the text says what would be one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"must be a duration, not {value!r}: {_EXAMPLES}")
    seconds = _parse_text(value) if isinstance(value, str) else float(value)
    if not math.isfinite(seconds):
        raise ValueError(f"must be a finite duration, not {value!r}")
    if seconds < 0:
        raise ValueError(f"must not be negative, as {value!r} is")
    return seconds


def _parse_text(text: str) -> float:
    rest = text.strip()
    if rest.startswith("-"):
        raise ValueError(f"must not be negative, as {text!r} is")
    total, end, bare_numbers, parts = 0.0, 0, 0, 0
    while end < len(rest):
        part = _PART.match(rest, end)
        if part is None:
            raise ValueError(f"must be a duration, not {text!r}: {_EXAMPLES}")
        number, unit = part.groups()
        if unit and unit.lower() not in UNITS_S:
            known = ", ".join(UNITS_S)
            raise ValueError(f"has the unknown unit {unit!r} in {text!r}; units are {known}")
        bare_numbers += not unit
        parts += 1
        total += float(number) * UNITS_S[unit.lower() or "s"]
        end = part.end()
    if not parts or (bare_numbers and parts > 1):
        raise ValueError(f"must be a duration, not {text!r}: {_EXAMPLES}")
    return total


def format_duration(seconds: float) -> str:
    """Return a text that :func:`parse_duration` reads back as exactly ``seconds``.

    >>> format_duration(5400), format_duration(600), format_duration(0.5)
    ('90m', '10m', '0.5s')
    """
    for unit in ("d", "h", "m"):
        if seconds and seconds % UNITS_S[unit] == 0 and seconds < 1e15:
            return f"{int(seconds // UNITS_S[unit])}{unit}"
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds!r}s"
