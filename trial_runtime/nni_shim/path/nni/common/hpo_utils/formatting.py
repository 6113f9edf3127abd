"""A search space as a flat table: a row for each parameter, those of nested choices included.

A row's key is the way to it: names of parameters, and after the name of a nested choice the place
of the option. Parameters in this form are by the same keys: places of options, numbers above the
lower bound of a ``randint``, logarithms for the kinds that have one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional

#: Names of parameters, and places of options.
Key = tuple[Any, ...]


class ParameterSpec(NamedTuple):
    """One parameter. Bounds are logarithms where ``log_distributed`` says so; ``clip`` is not."""

    name: str
    type: str
    values: Any
    key: Key
    categorical: bool
    size: Any = None
    chosen_size: Optional[int] = 1
    low: Any = None
    high: Any = None
    normal_distributed: Any = None
    mu: Any = None
    sigma: Any = None
    q: Optional[float] = None
    clip: Optional[tuple[float, float]] = None
    log_distributed: Any = None

    def is_nested(self) -> bool:
        """Whether it belongs to an option of a choice."""
        return len(self.key) > 1 and isinstance(self.key[-2], int)

    def is_activated_in(self, partial_parameters: Any) -> bool:
        """Whether that option was chosen. Ask in the order of the table."""
        if not self.is_nested():
            return True
        return bool(partial_parameters.get(self.key[:-2]) == self.key[-2])


def format_search_space(search_space: Any) -> dict[Key, ParameterSpec]:
    """The table of a search space, by key, a choice before what lies below it."""
    table: dict[Key, ParameterSpec] = {}
    _add_rows(table, (), search_space)
    return table


def _add_rows(table: dict[Key, ParameterSpec], above: Key, space: Any) -> None:
    for name, entry in space.items():
        if name == "_name":
            continue
        key, kind, values = (*above, name), entry["_type"], entry["_value"]
        table[key] = _row(key, kind, values)
        if kind == "choice" and _is_nested(values):
            for place, option in enumerate(values):
                _add_rows(table, (*key, place), option)


def _row(key: Key, kind: str, values: Any) -> ParameterSpec:
    if kind == "choice":
        return ParameterSpec(key[-1], kind, values, key, True, len(values))
    if kind == "randint":
        first, end = (math.ceil(float(bound)) for bound in values[:2])
        return ParameterSpec(key[-1], kind, values, key, True, end - first)
    one, two = float(values[0]), float(values[1])
    spec = ParameterSpec(
        key[-1],
        kind,
        values,
        key,
        False,
        normal_distributed="normal" in kind,
        log_distributed="log" in kind,
        q=float(values[2]) if kind.startswith("q") else None,
    )
    if spec.normal_distributed:
        return spec._replace(mu=one, sigma=two)
    clip = (one, two) if spec.q is not None else None
    if spec.log_distributed:
        one, two = math.log(one), math.log(two)
    return spec._replace(low=one, high=two, clip=clip)


def deformat_parameters(formatted_parameters: Any, formatted_search_space: Any) -> Any:
    """Parameters as trials get them: options, rounded and clipped numbers, nested objects."""
    parameters: dict[str, Any] = {}
    for key, at in formatted_parameters.items():
        spec = formatted_search_space[key]
        inner = parameters
        for part in key[:-1]:
            if not isinstance(part, int):
                inner = inner.setdefault(part, {})
        inner[key[-1]] = _outward(spec, at)
    return parameters


def _outward(spec: ParameterSpec, at: Any) -> Any:
    if spec.type == "randint":
        return int(_first(spec) + at)
    if spec.categorical:
        option = spec.values[int(at)]
        return {"_name": option["_name"]} if _is_nested(spec.values) else option
    number = math.exp(at) if spec.log_distributed else at
    if spec.q is not None:
        number = round(number / spec.q) * spec.q
    if spec.clip is not None:
        number = min(max(number, spec.clip[0]), spec.clip[1])
    item = getattr(number, "item", None)  # numpy's scalars are no JSON
    return item() if callable(item) else number


def format_parameters(parameters: Any, formatted_search_space: Any) -> Any:
    """Parameters as rows of the table; the inverse of :func:`deformat_parameters`.

    Numbers that were rounded stay so.
    """
    formatted: dict[Key, Any] = {}
    for key, spec in formatted_search_space.items():
        if spec.is_activated_in(formatted):
            value = parameters
            for part in key:
                value = value if isinstance(part, int) else value[part]
            formatted[key] = _inward(spec, value)
    return formatted


def _inward(spec: ParameterSpec, value: Any) -> Any:
    if spec.type == "randint":
        return value - _first(spec)
    if spec.categorical and _is_nested(spec.values):
        return [option["_name"] for option in spec.values].index(value["_name"])
    if spec.categorical:
        return spec.values.index(value)
    return math.log(value) if spec.log_distributed else value


def _first(spec: ParameterSpec) -> int:
    return min(math.ceil(float(bound)) for bound in spec.values)


def _is_nested(options: Any) -> bool:
    return all(isinstance(option, dict) and "_name" in option for option in options)
