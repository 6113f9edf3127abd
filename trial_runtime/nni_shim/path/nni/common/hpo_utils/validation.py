"""The check whether a tuner can take a search space."""

from __future__ import annotations

import logging
from typing import Any, Optional

common_search_space_types = [
    "choice",
    "randint",
    "uniform",
    "quniform",
    "loguniform",
    "qloguniform",
    "normal",
    "qnormal",
    "lognormal",
    "qlognormal",
]


def validate_search_space(
    search_space: Any,
    support_types: Optional[list[str]] = None,
    raise_exception: bool = False,
) -> bool:
    """Check a search space; returns whether it is valid, and logs the fault.

    Args:
        search_space: as in the experiment file.
        support_types: the types that the tuner supports; None: all common ones.
        raise_exception: raise the fault as ``ValueError`` instead.
    """
    wrong = _objection(search_space, support_types or common_search_space_types)
    if wrong and raise_exception:
        raise ValueError(wrong)
    if wrong:
        logging.getLogger("nni").error(wrong)
    return not wrong


def _objection(space: Any, kinds: Any) -> str:
    if not isinstance(space, dict):
        return f"a search space is an object of parameters, not {space!r}"
    for name, entry in space.items():
        if not isinstance(entry, dict) or "_type" not in entry or "_value" not in entry:
            return f"search space {name!r}: an object with '_type' and '_value' expected: {entry!r}"
        if entry["_type"] not in kinds:
            return f"search space {name!r}: the type {entry['_type']!r} is not among {kinds}"
        if not isinstance(entry["_value"], list):
            return f"search space {name!r}: '_value' is a list, not {entry['_value']!r}"
        wrong = _value_objection(entry["_type"], entry["_value"])
        if wrong:
            return f"search space {name!r}: {entry['_type']} {wrong}: {entry['_value']!r}"
    return ""


def _value_objection(kind: str, values: list[Any]) -> str:
    if kind == "choice":
        plain = all(isinstance(option, (int, float, str)) for option in values)
        nested = bool(values) and isinstance(values[0], dict) and "_name" in values[0]
        return "" if plain or nested else "takes numbers and texts, or options with a '_name'"
    wanted = 3 if kind.startswith("q") else 2
    if len(values) != wanted:
        return f"takes {wanted} values"
    number = int if kind == "randint" else (int, float)
    if not all(isinstance(value, number) for value in values):
        return "takes whole numbers" if kind == "randint" else "takes numbers"
    if "normal" in kind:
        return "" if values[1] > 0 else "takes a sigma above 0"
    if values[0] >= values[1]:
        return "takes the lower bound first"
    return "takes bounds above 0" if "log" in kind and values[0] <= 0 else ""
