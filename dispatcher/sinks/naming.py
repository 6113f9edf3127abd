"""Parameters, metrics and results as flat names with plain values, within bounds.

What trials and tuners call things may be anything: ten thousand characters, control characters,
paths. A tracker gets names that are printable and short, and no two that were different become one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: Characters of a name; a longer one ends with a digest of the whole.
MOST_NAME: Final = 200

#: Characters of a text value.
MOST_TEXT: Final = 500

#: Names of one trial: architectures come flattened into hundreds of parameters.
MOST_PARAMETERS: Final = 64
MOST_METRICS: Final = 256

_MOST_LEVELS: Final = 8
_DIGEST: Final = 8


def shortened(text: str, most: int = MOST_NAME) -> str:
    """Return a name as it may be shown: without characters that no screen shows, and cut.

    >>> shortened("lr")
    'lr'
    """
    if len(text) <= most and text.isprintable():
        return text
    plain = "".join(c if c.isprintable() else "�" for c in text[: most + 1])
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
    return f"{plain[: most - _DIGEST - 1].rstrip()}~{digest}"


def shown_text(text: str, most: int = MOST_TEXT) -> str:
    """Return a value as it may be shown; cut with an ellipsis."""
    plain = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text[:most])
    return plain if len(text) <= most else f"{plain[: most - 1]}…"


def flat_parameters(
    parameters: Mapping[str, Any], most: int = MOST_PARAMETERS
) -> dict[str, float | str | bool]:
    """Return parameters by flat names: nested objects as ``a/b``, lists as their JSON text.

    >>> flat_parameters({"lr": 0.1, "opt": {"name": "sgd"}, "genes": [1, 2]})
    {'lr': 0.1, 'opt/name': 'sgd', 'genes': '[1, 2]'}
    """
    flat: dict[str, float | str | bool] = {}
    for name, value in _leaves("", parameters, 0):
        if len(flat) >= most:
            break
        flat[shortened(name)] = _plain(value)
    return flat


def flat_numbers(value: Any, number: float | None) -> dict[str, float]:
    """Return the numbers of a metric or a result; the one that counts is ``default``.

    Args:
        value: as reported.
        number: what it is worth, if it is worth a number.

    >>> flat_numbers({"default": 0.9, "loss": {"train": 1}}, 0.9)
    {'default': 0.9, 'loss/train': 1.0}
    """
    if not isinstance(value, dict):
        return {} if number is None else {"default": number}
    flat: dict[str, float] = {}
    if number is not None:
        flat["default"] = number
    for name, leaf in _leaves("", value, 0):
        if len(flat) >= MOST_METRICS:
            break
        if isinstance(leaf, int | float) and not isinstance(leaf, bool) and name != "default":
            flat[shortened(name)] = as_float(leaf)
    return flat


def as_float(value: float) -> float:
    """Return the number as a float; a whole one that is too large for it is infinite.

    >>> as_float(10 ** 400)
    inf
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _leaves(above: str, value: Any, level: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and level < _MOST_LEVELS:
        for key, inner in value.items():
            yield from _leaves(f"{above}/{key}" if above else str(key), inner, level + 1)
    else:
        yield above or "value", value


def _plain(value: Any) -> float | str | bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return as_float(value)
    if isinstance(value, str):
        return shown_text(value)
    return shown_text(json.dumps(value, ensure_ascii=False, default=str))
