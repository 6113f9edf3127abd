"""Ending what attempts leave behind: processes that outlive them."""

from __future__ import annotations

from collections.abc import Iterable

from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.processes import sweep
from trial_runtime.agent.runners.runner import Runner


def sweep_behind(runner: Runner, attempt: Attempt) -> None:
    """Kill what an attempt left behind, until nothing new turns up."""
    path = attempt.session_path
    sweep.sweep_where(runner.own_pids(), lambda pid: sweep.belongs(pid, path, attempt.pid))


def sweep_strays(runner: Runner, running: Iterable[Attempt]) -> None:
    """Kill the leftovers of attempts that are over.

    Processes without a known attempt are killed while no attempt runs.
    """
    live = {each.session_path for each in running}

    def stray(pid: int) -> bool:
        return not live or sweep.session_of(pid) not in live | {None, ""}

    sweep.sweep_where(runner.own_pids(), stray)
