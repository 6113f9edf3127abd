"""The needs that a proposal brings along, as plain JSON values: read and checked."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dispatcher.core.resources import Needs

#: Larger than any machine: what is above is a slip, and sums of it stay exact.
_MOST = 1 << 50


class BadNeeds(ValueError):
    """Raised for bad needs: ``str()`` is one line that begins with the key."""


def read_needs(value: Any, usual: Needs) -> Needs:
    """The needs of one trial: what it says, else what is usual in its experiment.

    Args:
        value: a mapping with any of ``gpus``, ``gpu_memory_bytes``, ``cpus``, ``memory_bytes``,
            ``resources`` (amounts by name) and ``priority``.
        usual: the needs of trials that bring none.

    Raises:
        BadNeeds: another key, or a value that no trial can need.
    """
    if not isinstance(value, Mapping):
        raise BadNeeds(f"must be a mapping such as {{'gpus': 1}}, not {value!r}")
    own: dict[str, Any] = {}
    for key, given in value.items():
        if key not in _READERS:
            raise BadNeeds(f"has the unknown key {key!r}; known are {', '.join(_READERS)}")
        name, read = _READERS[key]
        try:
            own[name] = read(given)
        except BadNeeds as error:
            raise BadNeeds(f"{key} {error}") from None
    return replace(usual, **own)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadNeeds(f"must be a number, not {value!r}")
    if not 0 <= value <= _MOST:
        raise BadNeeds(f"must be between 0 and {_MOST}, not {value!r}")
    return float(value)


def _gpus(value: Any) -> float:
    number = _number(value)
    if number > 1 and not number.is_integer():
        raise BadNeeds(
            f"must be a share of one GPU, up to 1, or a whole number of them, not {value!r}"
        )
    return number


def _bytes(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise BadNeeds(f"must be a whole number of bytes, not {value!r}")
    return value


def _priority(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MOST:
        raise BadNeeds(f"must be a whole number, not {value!r}")
    return value


def _amounts(value: Any) -> tuple[tuple[str, float], ...]:
    if not isinstance(value, Mapping):
        raise BadNeeds(f"must be names with their amounts, as in {{'licence': 1}}, not {value!r}")
    amounts = []
    for name, amount in value.items():
        try:
            number = _number(amount)
        except BadNeeds as error:
            raise BadNeeds(f"has {name!r}, which {error}") from None
        if number:
            amounts.append((str(name), number))
    return tuple(sorted(amounts))


_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "gpus": ("gpus", _gpus),
    "gpu_memory_bytes": ("gpu_memory_bytes", _bytes),
    "cpus": ("cpus", _number),
    "memory_bytes": ("memory_bytes", _bytes),
    "resources": ("custom", _amounts),
    "priority": ("priority", _priority),
}
