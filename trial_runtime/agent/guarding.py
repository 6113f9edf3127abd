"""The agent's side of its warden, which ends what the agent ran should the agent be killed."""

from __future__ import annotations

import logging
import os
import secrets
import subprocess
import sys
import time

from trial_runtime.agent import warden
from trial_runtime.agent.attempt import Exit
from trial_runtime.agent.processes import ChildWatch
from trial_runtime.agent.timers import Timers
from trial_runtime.session_file import AGENT_VARIABLE

#: A warden that was killed is followed by another one after this time (seconds).
AGAIN_S = 5.0

_log = logging.getLogger("bequeath.agent")


class Guard:
    """Keeps a warden beside the agent (Linux; nowhere else can processes be known by a mark).

    Args:
        run_folder: of the experiment; heads know by it what agents of theirs have left.
    """

    def __init__(self, run_folder: str, children: ChildWatch, timers: Timers) -> None:
        #: The value of :data:`AGENT_VARIABLE` in the environment of all that this agent runs.
        self.mark = f"{run_folder}/agent-{os.getpid()}-{secrets.token_hex(8)}"
        self._children = children
        self._timers = timers
        self._warden: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start a warden; without one, what a killed agent leaves is ended by its head only."""
        if sys.platform != "linux":
            return
        try:
            self._warden = subprocess.Popen(
                [sys.executable, "-I", "-S", warden.__file__, f"{AGENT_VARIABLE}={self.mark}"],
                cwd="/",
                env={},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("cannot start the warden of this agent: %s", error.strerror)
            self._timers.at(time.monotonic() + AGAIN_S, self.start)
            return
        self._warden.returncode = 0  # reaped through ChildWatch
        self._children.add(self._warden.pid, self._ended)

    def _ended(self, _outcome: Exit) -> None:
        if self._warden is not None and self._warden.stdin is not None:
            self._warden.stdin.close()
        _log.warning("the warden of this agent was ended; another one follows")
        self._timers.at(time.monotonic() + AGAIN_S, self.start)
