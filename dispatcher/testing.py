"""For the tests of whoever writes a tuner: an experiment without trials, in one call.

What ``bequeath tuner check`` does, from Python. Gates and a search for unit tests, which need no
processes, are in :mod:`tuners.testing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dispatcher.tuner_tools.check import CheckReport, Fault, check_tuner
from dispatcher.tuner_tools.named import named_tuner
from dispatcher.tuner_tools.rehearsal import RehearsalPlan
from dispatcher.wiring.nesting import refuse_nested

__all__ = ["CheckReport", "Fault", "assert_sound", "rehearse"]

#: Requests that overlap, and trials that run at one time.
LOOKAHEAD, SLOTS = 64, 16


def rehearse(
    tuner: type | str,
    *,
    class_args: Mapping[str, Any] | None = None,
    search_space: Mapping[str, Any] | Path | None = None,
    trials: int = 96,
    seed: int = 0,
    deadline_s: float = 60.0,
) -> CheckReport:
    """Play an experiment around a tuner and report what breaks the threading contract. Blocks.

    The tuner runs in a process of its own, as in an experiment, on the real engine; trials follow a
    script. In a second run the tuner's process is killed on the way.

    Args:
        tuner: its class, at the top of a module; or ``MODULE:CLASS``, ``FILE.py:CLASS``, or the
            name of a built-in one.
        class_args: arguments of its constructor.
        search_space: as an experiment file writes it, or a file of it; None: numbers and choices
            of every type.
        trials: how many there are.
        seed: draws the fate of each trial.
        deadline_s: seconds that each of the two runs may take.

    Raises:
        UserError: there is no such tuner, or it does not take these arguments.
        DispatcherError: the rehearsal itself failed.
    """
    refuse_nested()  # the tuner host imports the file that calls this, if it has no guard
    plan = RehearsalPlan(
        trials=trials,
        slots=SLOTS,
        lookahead=LOOKAHEAD,
        seed=seed,
        deadline_s=deadline_s,
        provoke=True,
    )
    return check_tuner(named_tuner(tuner, class_args or {}, search_space), plan)


def assert_sound(
    tuner: type | str,
    *,
    class_args: Mapping[str, Any] | None = None,
    search_space: Mapping[str, Any] | Path | None = None,
    trials: int = 96,
    seed: int = 0,
    deadline_s: float = 60.0,
) -> CheckReport:
    """Fail a test with the sentences of ``bequeath tuner check``, if there are any.

    ``def test_it_is_sound(): assert_sound(MyTuner)`` is a whole test.

    Args:
        tuner: as of :func:`rehearse`, and so are all others.
        class_args: arguments of its constructor.
        search_space: as an experiment file writes it, or a file of it.
        trials: how many there are.
        seed: draws the fate of each trial.
        deadline_s: seconds that each of the two runs may take.

    Raises:
        AssertionError: the tuner breaks the contract.
        UserError: there is no such tuner, or it does not take these arguments.
        DispatcherError: the rehearsal itself failed.
    """
    report = rehearse(
        tuner,
        class_args=class_args,
        search_space=search_space,
        trials=trials,
        seed=seed,
        deadline_s=deadline_s,
    )
    if report.faults:
        raise AssertionError("\n".join(_sentence(fault) for fault in report.faults))
    return report


def _sentence(fault: Fault) -> str:
    details = "" if fault.details in ("", fault.text) else f"\n{fault.details.rstrip()}"
    return fault.text + details.replace("\n", "\n    ")
