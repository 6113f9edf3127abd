"""Results of an attempt from the values of its lines."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trial_runtime.agent.config import MetricsSpec
from trial_runtime.agent.programs.lines import Measured
from trial_runtime.agent.programs.results import ProgramResults


def reports(spec: MetricsSpec, *lines: Measured) -> tuple[list[Any], Any]:
    """What is reported of these lines, and the final result."""
    results = ProgramResults(spec)
    return [value for line in lines for value in results.take(line)], results.final()


def test_an_objective_alone_is_a_number() -> None:
    assert reports(MetricsSpec("acc"), Measured([("acc", 0.5)])) == ([0.5], 0.5)


def test_others_and_the_step_stand_beside_it() -> None:
    """Those of the very line, whatever their order there, and those of earlier lines."""
    spec = MetricsSpec("acc", also=("loss", "lr", "never"))
    intermediate, final = reports(
        spec,
        Measured([("lr", 0.1)]),
        Measured([("acc", 0.5), ("loss", 2.0)], step=1),
        Measured([("loss", 1.0)]),
        Measured([("acc", 0.6)], step=2),
    )
    assert intermediate == [
        {"default": 0.5, "loss": 2.0, "lr": 0.1, "step": 1},
        {"default": 0.6, "loss": 1.0, "lr": 0.1, "step": 2},
    ]
    assert final == {"default": 0.6, "loss": 1.0, "lr": 0.1, "step": 2}


@pytest.mark.parametrize("strategy, counts", [("latest", 0.4), ("max", 0.9), ("min", 0.1)])
def test_the_file_says_which_value_counts(strategy: str, counts: float) -> None:
    spec = MetricsSpec("acc", strategies={"acc": strategy})
    lines = [Measured([("acc", value)]) for value in (0.5, 0.9, 0.1, 0.4)]
    assert reports(spec, *lines) == ([0.5, 0.9, 0.1, 0.4], counts)


def test_each_metric_has_a_strategy_of_its_own() -> None:
    spec = MetricsSpec("acc", also=("loss",), strategies={"acc": "max", "loss": "min"})
    lines = [Measured([("acc", a), ("loss", b)]) for a, b in ((0.9, 3.0), (0.5, 1.0), (0.6, 2.0))]
    assert reports(spec, *lines)[1] == {"default": 0.9, "loss": 1.0}


def test_the_latest_is_that_of_the_latest_time() -> None:
    """Lines of several processes come in any order. Mutation: the last line counts."""
    spec = MetricsSpec("acc")
    timed = [Measured([("acc", 0.2)], at=9.0), Measured([("acc", 0.7)], at=3.0)]
    assert reports(spec, *timed)[1] == 0.2
    assert reports(spec, *timed, Measured([("acc", 0.3)]))[1] == 0.3  # it has no time
    assert reports(spec, *timed, Measured([("acc", 0.4)], at=9.0))[1] == 0.4


def test_what_is_not_finite_is_no_result() -> None:
    """Mutation: the last finite loss of a training that has diverged is its result."""
    lines = [Measured([("loss", 2.0)]), Measured([("loss", None)])]
    assert reports(MetricsSpec("loss"), *lines) == ([2.0], None)
    assert reports(MetricsSpec("loss", strategies={"loss": "min"}), *lines) == ([2.0], 2.0)
    assert reports(MetricsSpec("loss"), *lines, Measured([("loss", 3.0)])) == ([2.0, 3.0], 3.0)


def test_a_missing_result_has_its_reason() -> None:
    results = ProgramResults(MetricsSpec("acc", also=("loss",), streams=("stdout",)))
    assert results.why_none == "no value of 'acc' was in its output"
    results.take(Measured([("loss", 1.0)]))
    assert results.why_none == "no value of 'acc' was in its output; there are values of 'loss'"
    results.take(Measured([("acc", None)]))
    assert results.why_none == "its last value of 'acc' is no finite number"
    assert "was in m.json" in ProgramResults(MetricsSpec("acc", file="m.json")).why_none


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), max_size=12))
def test_every_strategy_counts_over_all_values(values: list[float | None]) -> None:
    finals = {
        name: reports(
            MetricsSpec("a", strategies={"a": name}), *(Measured([("a", v)]) for v in values)
        )
        for name in ("latest", "min", "max")
    }
    finite = [value for value in values if value is not None]
    assert all(intermediate == finite for intermediate, _ in finals.values())
    assert finals["latest"][1] == (values[-1] if values else None)
    assert finals["min"][1] == min(finite, default=None)
    assert finals["max"][1] == max(finite, default=None)
    assert all(final is None or math.isfinite(final) for _, final in finals.values())
