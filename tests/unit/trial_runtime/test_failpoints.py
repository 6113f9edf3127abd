"""Failpoints strike when and as often as the plan says, and only there."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trial_runtime.failpoints import NAMES, VARIABLE, failpoint, out_of_reach, planned

ONE, OTHER = "engine.batch.applied", "engine.batch.committed"


def reaches(name: str = ONE) -> bool:
    """Whether a plan that raises strikes now."""
    try:
        failpoint(name)
    except OSError as error:
        return error.errno == errno.ENOSPC and name in str(error)
    return False


def test_the_first_time_by_default_and_once() -> None:
    with planned(f"{ONE}=raise:ENOSPC"):
        assert [reaches() for _ in range(3)] == [True, False, False]
    assert not reaches()


def test_at_the_time_that_is_asked_for() -> None:
    with planned(f" {ONE}@3=raise:ENOSPC , {ONE}@5=raise:ENOSPC"):
        assert [reaches() for _ in range(6)] == [False, False, True, False, True, False]


def test_every_time_but_where_it_is_out_of_reach() -> None:
    with planned(f"{ONE}@*=raise:ENOSPC"):
        assert reaches()
        with out_of_reach():
            assert not reaches()
        assert [reaches() for _ in range(2)] == [True, True]


def test_names_are_counted_apart() -> None:
    with planned(f"{ONE}@2=raise:ENOSPC,{OTHER}=raise:ENOSPC"):
        assert not reaches()
        assert reaches(OTHER)
        assert reaches()
        assert not reaches("host.restored")


def test_what_struck_in_one_process_does_not_in_the_next(tmp_path: Path) -> None:
    text = f"{ONE}@2=raise:ENOSPC"
    with planned(text, struck=str(tmp_path)):
        assert [reaches() for _ in range(3)] == [False, True, False]
    with planned(text, struck=str(tmp_path)):
        assert [reaches() for _ in range(3)] == [False, False, False]
    assert (tmp_path / f"{ONE}@2").read_text() == str(os.getpid())


def test_sleeping_lets_the_process_go_on() -> None:
    with planned(f"{ONE}=sleep:0"):
        failpoint(ONE)


@pytest.mark.parametrize(
    "text, complaint",
    [
        (ONE, "names no action"),
        ("no.such=kill", "no failpoint 'no.such'"),
        (f"{ONE}@soon=kill", "invalid literal"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_at_once(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint), planned(text):
        pass


def test_an_action_that_nobody_knows_is_an_error_and_no_silence() -> None:
    with planned(f"{ONE}=die"), pytest.raises(ValueError, match="unknown action 'die'"):
        failpoint(ONE)


@pytest.mark.parametrize(
    "action, code", [("kill", -signal.SIGKILL), ("exit:7", 7), ("exit", 1), ("sleep:0", 0)]
)
def test_the_environment_makes_the_plan_of_a_process(action: str, code: int) -> None:
    program = f"from trial_runtime.failpoints import failpoint; failpoint({ONE!r})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, VARIABLE: f"{ONE}={action}"},
        cwd=Path(__file__).parents[3],
        timeout=240,
    )
    assert done.returncode == code


def test_without_a_plan_nothing_happens() -> None:
    assert VARIABLE not in os.environ, "the tests themselves run with a plan"
    for name in NAMES:
        failpoint(name)
