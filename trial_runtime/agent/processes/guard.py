"""The agent's side of its warden, which ends all processes of an agent that is killed."""

from __future__ import annotations

import logging
import os
import secrets
import subprocess
import sys
import time

from trial_runtime.agent.attempt import Exit
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.processes import warden
from trial_runtime.agent.processes.children import ChildWatch
from trial_runtime.retry import growing_pause
from trial_runtime.session_file import AGENT_VARIABLE

#: A warden that was killed is followed by another one after the first of these pauses, which
#: doubles up to the second (seconds): where none can live, nobody tries for ever in vain.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 600.0

_log = logging.getLogger("bequeath.agent")


class Guard:
    """Keeps a warden beside the agent (Linux; nowhere else can processes be known by a mark).

    Args:
        run_folder: of the experiment; by it heads recognise processes that their agents left.
        children: of the agent.
        timers: of the agent's loop.
    """

    def __init__(self, run_folder: str, children: ChildWatch, timers: Timers) -> None:
        #: The value of :data:`AGENT_VARIABLE` in the environment of all that this agent runs.
        self.mark = f"{run_folder}/agent-{os.getpid()}-{secrets.token_hex(8)}"
        self._children = children
        self._timers = timers
        self._warden: subprocess.Popen[bytes] | None = None
        self._tries = 0

    def start(self) -> None:
        """Start a warden; without one, only the head ends the processes of a killed agent."""
        if sys.platform != "linux":
            return
        try:
            self._warden = subprocess.Popen(
                [sys.executable, "-I", "-S", warden.__file__, f"{AGENT_VARIABLE}={self.mark}"],
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._try_again(f"cannot be started: {error.strerror}")
            return
        self._warden.returncode = 0  # reaped through ChildWatch
        self._children.add(self._warden.pid, self._ended)

    def _ended(self, _outcome: Exit) -> None:
        if self._warden is not None and self._warden.stdin is not None:
            self._warden.stdin.close()
        self._try_again("was ended")

    def _try_again(self, why: str) -> None:
        self._tries += 1
        pause_s = growing_pause(self._tries, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        _log.warning("the warden of this agent %s; another one follows in %.0f s", why, pause_s)
        self._timers.at(time.monotonic() + pause_s, self.start)
