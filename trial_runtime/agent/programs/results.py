"""The results of one attempt, put together from the values that its program prints or writes.

Each value of the objective is an intermediate result. The final one is the latest, the least or the
greatest of them, as the experiment file says. Other metrics stand beside it, with their step.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from trial_runtime.agent.config import MetricsSpec
from trial_runtime.agent.programs.lines import Measured

#: The keys of a report that are no names of metrics.
RESERVED = ("default", "step")


class _Latest(NamedTuple):
    value: Optional[float]  # None: it was not finite
    at: Optional[float]
    step: Optional[int]


class _Held:
    """The values of one metric so far."""

    __slots__ = ("greatest", "latest", "least")

    def __init__(self) -> None:
        self.latest: Optional[_Latest] = None
        self.least: Optional[float] = None
        self.greatest: Optional[float] = None

    def add(self, one: _Latest) -> None:
        """Take one more value; of two with a time the later one is the latest."""
        before = self.latest
        timed = before is not None and before.at is not None and one.at is not None
        if not timed or one.at >= before.at:  # type: ignore[operator, union-attr]
            self.latest = one
        if one.value is not None:
            self.least = one.value if self.least is None else min(self.least, one.value)
            self.greatest = one.value if self.greatest is None else max(self.greatest, one.value)

    def by(self, strategy: str) -> Optional[float]:
        """The value that counts: ``latest``, ``min`` or ``max``; None if there is none."""
        if strategy == "min":
            return self.least
        if strategy == "max":
            return self.greatest
        return None if self.latest is None else self.latest.value


class ProgramResults:
    """The results of one attempt so far.

    Args:
        spec: names of metrics, and which value of each counts.
    """

    def __init__(self, spec: MetricsSpec) -> None:
        self._spec = spec
        self._held: dict[str, _Held] = {}

    def take(self, measured: Measured) -> list[Any]:
        """Note the values of a line; returns the intermediate results that follow from it."""
        objective = self._spec.objective
        reports = []
        # First those that stand beside the objective in this very line.
        for name, value in sorted(measured.values, key=lambda one: one[0] == objective):
            one = _Latest(value, measured.at, measured.step)
            self._held.setdefault(name, _Held()).add(one)
            if name == objective and value is not None:
                reports.append(self._with_others(value, measured.step, final=False))
        return reports

    def final(self) -> Any:
        """The final result; None if there is none."""
        held = self._held.get(self._spec.objective)
        strategy = self._strategy(self._spec.objective)
        value = None if held is None else held.by(strategy)
        if held is None or value is None:
            return None
        latest = held.latest if strategy == "latest" else None
        return self._with_others(value, None if latest is None else latest.step, final=True)

    @property
    def why_none(self) -> str:
        """Why there is no final result, for a user."""
        spec = self._spec
        if spec.objective in self._held:
            return f"its last value of {spec.objective!r} is no finite number"
        others = f"; there are values of {', '.join(map(repr, self._held))}" if self._held else ""
        place = spec.file or ("its file of hypertune" if spec.hypertune else "its output")
        return f"no value of {spec.objective!r} was in {place}{others}"

    def _strategy(self, name: str) -> str:
        return self._spec.strategies.get(name, "latest")

    def _with_others(self, value: float, step: Optional[int], *, final: bool) -> Any:
        report: dict[str, Any] = {"default": value}
        for name in self._spec.also:
            held = self._held.get(name)
            other = None if held is None else held.by(self._strategy(name) if final else "latest")
            if other is not None:
                report[name] = other
        if step is not None:
            report["step"] = step
        return report if len(report) > 1 else value
