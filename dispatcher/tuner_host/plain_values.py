"""Turns a tuner's return value into plain JSON values, or names the exact place that is none."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

#: Deeper nesting is refused; it is a value that contains itself, more often than not.
MAX_DEPTH = 64

_INT64 = 1 << 63
_UINT64 = 1 << 64


class NotJson(Exception):
    """Raised for a value that JSON cannot express; ``str()`` begins with the value's place."""


def plain(value: Any, path: str, depth: int = 0, *, any_keys: bool = False) -> Any:
    """Copy a value into plain dicts, lists, texts and numbers.

    numpy scalars become numbers and numpy arrays lists, tuples lists, enums with a JSON base
    that base. Many trials may share ``value``, so it is never changed.

    Args:
        value: the tuner's return value, or a part of it.
        path: its name in errors.
        depth: its depth within the return value.
        any_keys: take numbers, bools and None as keys, too, which become the texts that JSON
            writes for them, as NNI did.

    Raises:
        NotJson: some part of it cannot be expressed in JSON.
    """
    kind = type(value)
    if kind is str:
        return _text(value, path)
    if kind is int:
        return _whole(value, path)
    if kind is float:
        return _finite(value, path)
    if value is None or kind is bool:
        return value
    if depth > MAX_DEPTH:
        raise NotJson(f"{path}: is nested deeper than {MAX_DEPTH} levels (does it hold itself?)")
    if isinstance(value, Mapping):
        return _mapping(value, path, depth, any_keys)
    if isinstance(value, list | tuple):
        return [
            plain(entry, f"{path}[{i}]", depth + 1, any_keys=any_keys)
            for i, entry in enumerate(value)
        ]
    return _rare(value, path, depth, any_keys)


def _mapping(value: Mapping[Any, Any], path: str, depth: int, any_keys: bool) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, entry in value.items():
        word = _written(key) if any_keys else key
        if not isinstance(word, str):
            raise NotJson(
                f"{path}: has the key {key!r} ({type(key).__name__}); JSON keys are text, "
                f"write {str(key)!r}"
            )
        name = _text(word, path)
        if name in result:
            raise NotJson(f"{path}: has two keys that are {name!r} in JSON")
        result[name] = plain(entry, f"{path}.{name}", depth + 1, any_keys=any_keys)
    return result


def _written(key: Any) -> Any:
    """A key as JSON writes it, if it can."""
    item = getattr(key, "item", None)  # of numpy's numbers
    value = item() if callable(item) else key
    return json.dumps(value) if value is None or type(value) in (bool, int, float) else key


def _rare(value: Any, path: str, depth: int, any_keys: bool) -> Any:
    if isinstance(value, str):
        return _text(str.__str__(value), path)
    if isinstance(value, int):
        return _whole(int(value), path)
    if isinstance(value, float):
        return _finite(float(value), path)
    module = type(value).__module__.partition(".")[0]
    if module == "numpy" and hasattr(value, "tolist"):
        converted = value.tolist()
        if type(converted).__module__.partition(".")[0] != "numpy":
            return plain(converted, path, depth + 1, any_keys=any_keys)
    raise NotJson(f"{path}: {_named(value)} is not JSON{_advice(value, module)}")


def _text(value: str, path: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotJson(f"{path}: {value!r} is not valid Unicode (a lone surrogate)") from None
    return value


def _whole(value: int, path: str) -> int:
    if not -_INT64 <= value < _UINT64:
        raise NotJson(f"{path}: an integer of {value.bit_length()} bits is too large (64 at most)")
    return value


def _finite(value: float, path: str) -> float:
    if not math.isfinite(value):
        written = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        raise NotJson(f"{path}: {written} is not JSON")
    return value


def _named(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _advice(value: Any, module: str) -> str:
    if isinstance(value, set | frozenset):
        return "; return a sorted list"
    if module == "torch":
        return "; return value.tolist(), or keep tensors in the weights"
    if isinstance(value, bytes):
        return "; return text"
    if callable(value):
        return "; return its name and let the trial look it up"
    return ""
