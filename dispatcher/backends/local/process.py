"""The process of one agent: started, found again by a later head, watched and ended.

It is known by its number *and* the moment it started, which stand in the experiment's folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from dispatcher.backends.local.identity import (
    AgentRecord,
    is_running,
    read_record,
    record_of,
    write_private,
    write_record,
)
from trial_runtime import wire
from trial_runtime.agent.config import ON_RECORD, AgentConfig, encode_config
from trial_runtime.failpoints import failpoint


class AgentProcess:
    """At most one process at a time. Thread: the engine's."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._record_path = folder / f"agent-{worker}.json"
        self._config_path = folder / f"agent-{worker}.config.json"
        self._record: AgentRecord | None = None
        self._is_our_child = False  # else a head before us started it

    @property
    def pid(self) -> int | None:
        """Its number; None if there is none, or it was forgotten."""
        return self._record.pid if self._record is not None else None

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        if self._record is None:
            return False
        if self._is_our_child:
            try:
                os.waitpid(self._record.pid, os.WNOHANG)
            except ChildProcessError:
                return False
        return is_running(self._record)

    def find(self) -> bool | None:
        """Take up the one that a head before us has left: true if it runs, false if it has
        ended, None if none was left."""
        record = read_record(self._record_path)
        if record is None:
            return None
        if not is_running(record):
            return False
        self._record = record
        return True

    def write_config(self, config: AgentConfig) -> None:
        """What it is told at its start, and reads again when it looks for its head."""
        write_private(self._config_path, encode_config(config))

    def launch(self, config: AgentConfig) -> None:
        """Start one. It leads a session of its own and outlives us. Raises ``OSError``."""
        self.write_config(config)
        logs = self._folder / "logs"
        logs.mkdir(exist_ok=True)
        environment = dict(os.environ)
        root = str(Path(wire.__file__).parent.parent)
        environment["PYTHONPATH"] = os.pathsep.join(
            part for part in (environment.get("PYTHONPATH", ""), root) if part
        )
        module = ["-P", "-m", "trial_runtime.agent"]
        with open(logs / "agent.log", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, *module, str(self._config_path), ON_RECORD],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        # It may outlive this head, and is reaped by its number: Popen need not watch it.
        process.returncode = 0
        failpoint("launch.agent.spawned")
        self._is_our_child = True
        self._record = record_of(process.pid)
        write_record(self._record_path, self._record)
        failpoint("launch.agent.recorded")
        _let_go(process)

    def terminate(self) -> None:
        """SIGTERM: it ends its trials with their grace."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL. Not to be called unless it was just seen alive."""
        self._signal(signal.SIGKILL)

    def wait_until_gone(self, until: float) -> bool:
        """Blocks to this moment of the monotonic clock at most; false if it is still there."""
        pause_s = 0.01
        while self.alive:
            if time.monotonic() > until:
                return False
            time.sleep(pause_s)
            pause_s = min(0.2, pause_s * 2)
        return True

    def forget(self) -> None:
        """It is gone, or given up."""
        self._record = None
        self._is_our_child = False
        self._record_path.unlink(missing_ok=True)

    def _signal(self, number: int) -> None:
        if self._record is None:
            return
        try:
            os.kill(self._record.pid, number)
        except ProcessLookupError:
            pass


def _let_go(agent: subprocess.Popen[bytes]) -> None:
    """It is on record, so the next head will find it: it may begin."""
    assert agent.stdin is not None
    try:
        agent.stdin.write(b"\n")
        agent.stdin.close()
    except BrokenPipeError:
        pass  # it has ended already, and will be missed
