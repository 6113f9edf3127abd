"""Starting an agent's process, so that it outlives its starter and is found again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from trial_runtime import descriptors, wire
from trial_runtime.agent.config import ON_RECORD
from trial_runtime.agent.processes.record import (
    AgentRecord,
    config_path,
    record_of,
    record_path,
    write_record,
)
from trial_runtime.failpoints import failpoint
from trial_runtime.safe_path import module_arguments


def start_agent(
    folder: Path, worker: str, environment: Mapping[str, str] | None = None, *, code: str = ""
) -> AgentRecord:
    """Start an agent whose configuration is written. It leads a session of its own.

    Args:
        folder: the experiment's, on this machine.
        worker: its name.
        environment: variables that it gets beside ours.
        code: a digest of our package, where the folder that it is in does not tell.

    Raises:
        OSError: no process can be started, or nothing be written.
    """
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    root = str(Path(wire.__file__).parent.parent)
    full = {**os.environ, **(environment or {})}
    full["PYTHONPATH"] = os.pathsep.join(p for p in (full.get("PYTHONPATH", ""), root) if p)
    python = [sys.executable, *module_arguments("trial_runtime.agent")]
    with open(logs / "agent.log", "ab") as log:
        process = subprocess.Popen(
            [*python, str(config_path(folder, worker)), ON_RECORD],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=full,
            start_new_session=True,
        )
    descriptors.give_back(process.pid)
    # It may outlive us, and is reaped by its number: Popen need not watch it.
    process.returncode = 0
    failpoint("launch.agent.spawned")
    record = record_of(process.pid, root, code)
    write_record(record_path(folder, worker), record)
    failpoint("launch.agent.recorded")
    _let_go(process)
    return record


def _let_go(agent: subprocess.Popen[bytes]) -> None:
    """Let an agent begin that is on record, so that the next head will find it."""
    assert agent.stdin is not None
    try:
        agent.stdin.write(b"\n")
        agent.stdin.close()
    except BrokenPipeError:
        pass  # it has ended already, and will be missed
