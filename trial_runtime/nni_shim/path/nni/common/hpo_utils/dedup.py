"""Parameters that were not proposed before."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..._json import dump  # noqa: TID252 - this file is nni.common… to its users
from .. import NoMoreTrialError  # noqa: TID252
from .formatting import ParameterSpec, deformat_parameters

#: Points of an axis without steps, where all combinations are gone through.
_POINTS = 64


class Deduplicator:
    """Returns parameters that are new unchanged, and for others the next new combination.

    Raises:
        NoMoreTrialError: there is none left.
    """

    def __init__(self, formatted_search_space: Any) -> None:
        self._space = formatted_search_space
        self._seen: set[str] = set()
        self._rest = _combinations(list(formatted_search_space.values()), {})

    def __call__(self, formatted_parameters: Any) -> Any:
        if self._is_new(formatted_parameters):
            return formatted_parameters
        for other in self._rest:
            if self._is_new(other):
                return other
        raise NoMoreTrialError

    def add_history(self, formatted_parameters: Any) -> None:
        """Count parameters among those that were proposed."""
        self._is_new(formatted_parameters)

    def _is_new(self, formatted: Any) -> bool:
        text = dump(deformat_parameters(formatted, self._space), sort_keys=True)
        new = text not in self._seen
        self._seen.add(text)
        return new


def _combinations(specs: list[ParameterSpec], chosen: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    if not specs:
        yield dict(chosen)
        return
    first, rest = specs[0], specs[1:]
    if not first.is_activated_in(chosen):
        yield from _combinations(rest, chosen)
        return
    for at in _points(first):
        yield from _combinations(rest, {**chosen, first.key: at})


def _points(spec: ParameterSpec) -> Iterator[Any]:
    if spec.categorical:
        yield from range(spec.size)
        return
    if spec.normal_distributed:
        low, high = spec.mu - 3 * spec.sigma, spec.mu + 3 * spec.sigma
    else:
        low, high = spec.low, spec.high
    if spec.q is None or spec.normal_distributed:
        yield from (low + (high - low) * (place + 0.5) / _POINTS for place in range(_POINTS))
        return
    assert spec.clip is not None
    for step in range(round(spec.clip[0] / spec.q), round(spec.clip[1] / spec.q) + 1):
        number = min(max(step * spec.q, spec.clip[0]), spec.clip[1])
        yield math.log(number) if spec.log_distributed else number
