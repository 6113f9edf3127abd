"""Does what its parameters say, and nothing else. ``do`` is a key of ``_ACTIONS`` below."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import trial_runtime as bq

#: Longer than any test waits; a process that waits so long was forgotten.
_LONG_S = 600.0


def main(parameters: Mapping[str, Any] | None = None) -> None:
    if parameters is None:
        parameters = bq.get_parameters()
    print("said by", parameters["do"], flush=True)  # noqa: T201 - what a trial prints is tried, too
    _ACTIONS[parameters["do"]](parameters)


def _finish(parameters: Mapping[str, Any]) -> None:
    for number in range(3):
        bq.report_intermediate(number)
    bq.report_final({"default": 1.5, "pid": os.getpid(), "cwd": os.getcwd()})


def _save(parameters: Mapping[str, Any]) -> None:
    import numpy as np

    state = {"counter": np.zeros(1)}
    if parameters.get("restore_path"):
        report = bq.load_weights(into=state)
        assert not report.missing, report
    state["counter"] += 1
    bq.save_weights(state)
    bq.report_final(float(state["counter"][0]))


def _fail(parameters: Mapping[str, Any]) -> None:
    sys.stderr.write("this one fails\n")
    sys.exit(3)


def _die(parameters: Mapping[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _wait(parameters: Mapping[str, Any]) -> None:
    """Wait until asked to stop: by SIGTERM, or by the flag of bequeath."""
    bq.report_intermediate(os.getpid())
    until = time.monotonic() + parameters.get("for_s", _LONG_S)
    while time.monotonic() < until and not bq.should_stop():
        time.sleep(0.05)
    bq.report_final(os.getpid())


def _ignore(parameters: Mapping[str, Any]) -> None:
    """Go on when asked to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    bq.report_intermediate(os.getpid())
    time.sleep(_LONG_S)


def _kill_parent(parameters: Mapping[str, Any]) -> None:
    """Kill the agent when asked to stop, as on a machine that runs out of memory."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    bq.report_intermediate(os.getpid())
    while not bq.should_stop():
        time.sleep(0.05)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(_LONG_S)


def _look(parameters: Mapping[str, Any]) -> None:
    """Report how many of some processes still exist."""
    bq.report_final(sum(_runs(pid) for pid in parameters["pids"]))


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"  # dead, and not reaped
    except OSError:
        return False


_ACTIONS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "finish": _finish,
    "save": _save,
    "fail": _fail,
    "die": _die,
    "wait": _wait,
    "ignore": _ignore,
    "kill parent": _kill_parent,
    "look": _look,
}
