"""Sizes as people write them: ``64mb``, ``1.5gb``, ``4096`` (bytes). Units are powers of 1024."""

from __future__ import annotations

import re

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
_EXAMPLES = "write it as '64mb', '1.5gb' or a number of bytes"
_MOST = 1 << 60


def parse_size(value: object) -> int:
    """Return the bytes that ``value`` stands for; units b, kb, mb, gb, tb are powers of 1024.

    Raises:
        ValueError: not a size, negative, or beyond 2**60; the text says what would be one.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"must be a size, not {value!r}: {_EXAMPLES}")
    size = _parse_text(value) if isinstance(value, str) else value
    if size < 0:
        raise ValueError(f"must not be negative, as {value!r} is")
    if size > _MOST:
        raise ValueError(f"is larger than any disk: {value!r}")
    return size


def _parse_text(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"must be a size, not {text!r}: {_EXAMPLES}")
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
