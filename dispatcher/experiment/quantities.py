"""Durations and sizes as people write them: ``1h30m``, ``90`` (seconds); ``64mb``, ``4096``."""

from __future__ import annotations

import math
import re

UNITS_S: dict[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

_PART = re.compile(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)\s*([a-z]*)", re.IGNORECASE)
_DURATIONS = "write it as '90s', '10m', '0.5h', '1h30m', '2d' or a number of seconds"

UNITS_BYTES: dict[str, int] = {
    "b": 1,
    "kb": 1 << 10,
    "mb": 1 << 20,
    "gb": 1 << 30,
    "tb": 1 << 40,
}
# NNI writes 'mb' and means 2**20; 'k' and 'MiB' are what other people write for the same.
_ALIASES = {"k": "kb", "m": "mb", "g": "gb", "t": "tb"} | {
    f"{letter}{end}": f"{letter}b"
    for letter in "kmgt"
    for end in ("ib", "i")  # 'Gi' is Kubernetes'
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_SIZES = "write it as '64mb', '1.5gb' or a number of bytes"
_MOST = 1 << 60


def parse_duration(value: object) -> float:
    """Return the seconds that ``value`` stands for.

    Numbers and bare numbers in quotes are seconds; parts with units add up
    (``1h30m``). Units: ms, s, m, h, d, w.

    Raises:
        ValueError: not a duration, negative, or not finite; the text says what would be one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"must be a duration, not {value!r}: {_DURATIONS}")
    seconds = _read_duration(value) if isinstance(value, str) else float(value)
    if not math.isfinite(seconds):
        raise ValueError(f"must be a finite duration, not {value!r}")
    if seconds < 0:
        raise ValueError(f"must not be negative, as {value!r} is")
    return seconds


def _read_duration(text: str) -> float:
    rest = text.strip()
    if rest.startswith("-"):
        raise ValueError(f"must not be negative, as {text!r} is")
    total, end, bare_numbers, parts = 0.0, 0, 0, 0
    while end < len(rest):
        part = _PART.match(rest, end)
        if part is None:
            raise ValueError(f"must be a duration, not {text!r}: {_DURATIONS}")
        number, unit = part.groups()
        if unit and unit.lower() not in UNITS_S:
            known = ", ".join(UNITS_S)
            raise ValueError(f"has the unknown unit {unit!r} in {text!r}; units are {known}")
        bare_numbers += not unit
        parts += 1
        total += float(number) * UNITS_S[unit.lower() or "s"]
        end = part.end()
    if not parts or (bare_numbers and parts > 1):
        raise ValueError(f"must be a duration, not {text!r}: {_DURATIONS}")
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


def parse_size(value: object) -> int:
    """Return the bytes that ``value`` stands for; units b, kb, mb, gb, tb are powers of 1024.

    Raises:
        ValueError: not a size, negative, or beyond 2**60; the text says what would be one.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"must be a size, not {value!r}: {_SIZES}")
    size = _read_size(value) if isinstance(value, str) else value
    if size < 0:
        raise ValueError(f"must not be negative, as {value!r} is")
    if size > _MOST:
        raise ValueError(f"is larger than any disk: {value!r}")
    return size


def _read_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"must be a size, not {text!r}: {_SIZES}")
    number, unit = match.groups()
    name = _ALIASES.get(unit.lower(), unit.lower()) or "b"
    if name not in UNITS_BYTES:
        known = ", ".join(UNITS_BYTES)
        raise ValueError(f"has the unknown unit {unit!r} in {text!r}; units are {known}")
    # Whole numbers stay whole: a float has 53 bits and a size may need 60.
    if "." not in number:
        return int(number) * UNITS_BYTES[name]
    return round(float(number) * UNITS_BYTES[name])


def format_size(size: int) -> str:
    """Return a text that :func:`parse_size` reads back as exactly ``size`` bytes.

    >>> format_size(64 << 20), format_size(1000)
    ('64mb', '1000b')
    """
    for unit in ("tb", "gb", "mb", "kb"):
        if size and size % UNITS_BYTES[unit] == 0:
            return f"{size // UNITS_BYTES[unit]}{unit}"
    return f"{size}b"
