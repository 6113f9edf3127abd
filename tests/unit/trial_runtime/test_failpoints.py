"""Failpoints strike when and as often as the plan says, and only there."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trial_runtime import failpoints
from trial_runtime.failpoints import NAMES, _Plan

ONE, OTHER = "engine.batch.applied", "engine.batch.committed"


def reaches(plan: _Plan, name: str = ONE) -> bool:
    """Whether a plan that raises strikes now."""
    try:
        plan.reach(name)
    except OSError as error:
        return error.errno == errno.ENOSPC and name in str(error)
    return False


def test_the_first_time_by_default_and_once() -> None:
    plan = _Plan(f"{ONE}=raise:ENOSPC")
    assert [reaches(plan) for _ in range(3)] == [True, False, False]


def test_at_the_time_that_is_asked_for() -> None:
    plan = _Plan(f" {ONE}@3=raise:ENOSPC , {ONE}@5=raise:ENOSPC")
    assert [reaches(plan) for _ in range(6)] == [False, False, True, False, True, False]


def test_every_time() -> None:
    plan = _Plan(f"{ONE}@*=raise:ENOSPC")
    assert [reaches(plan) for _ in range(3)] == [True, True, True]


def test_names_are_counted_apart() -> None:
    plan = _Plan(f"{ONE}@2=raise:ENOSPC,{OTHER}=raise:ENOSPC")
    assert not reaches(plan)
    assert reaches(plan, OTHER)
    assert reaches(plan)
    assert not reaches(plan, "host.restored")


def test_what_struck_in_one_process_does_not_in_the_next(tmp_path: Path) -> None:
    text = f"{ONE}@2=raise:ENOSPC"
    first, second = _Plan(text, struck=str(tmp_path)), _Plan(text, struck=str(tmp_path))
    assert [reaches(first) for _ in range(3)] == [False, True, False]
    assert [reaches(second) for _ in range(3)] == [False, False, False]
    assert (tmp_path / f"{ONE}@2").read_text() == str(os.getpid())


def test_sleeping_lets_the_process_go_on() -> None:
    _Plan(f"{ONE}=sleep:0").reach(ONE)


@pytest.mark.parametrize(
    "text, complaint",
    [
        (ONE, "names no action"),
        ("no.such=kill", "no failpoint 'no.such'"),
        (f"{ONE}@soon=kill", "invalid literal"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_at_once(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        _Plan(text)


def test_an_action_that_nobody_knows_is_an_error_and_no_silence() -> None:
    with pytest.raises(ValueError, match="unknown action 'die'"):
        _Plan(f"{ONE}=die").reach(ONE)


@pytest.mark.parametrize(
    "action, code", [("kill", -signal.SIGKILL), ("exit:7", 7), ("exit", 1), ("sleep:0", 0)]
)
def test_the_environment_makes_the_plan_of_a_process(action: str, code: int) -> None:
    program = f"from trial_runtime.failpoints import failpoint; failpoint({ONE!r})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, failpoints.VARIABLE: f"{ONE}={action}"},
        cwd=Path(__file__).parents[3],
        timeout=240,
    )
    assert done.returncode == code


def test_without_a_plan_nothing_happens() -> None:
    assert failpoints._plan is None, "the tests themselves run with a plan"
    for name in NAMES:
        failpoints.failpoint(name)
