"""The process of one agent: started, found again by a later head, watched and ended.

It is known by its number *and* the moment it started, which stand in the experiment's folder.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.local.installed import installed_code
from trial_runtime.agent.config import AgentConfig, encode_config
from trial_runtime.agent.processes.launching import start_agent
from trial_runtime.agent.processes.record import (
    AgentRecord,
    config_path,
    is_running,
    read_record,
    record_path,
    write_private,
)
from trial_runtime.agent.processes.sweep import kill_sessions_below
from trial_runtime.retry import Retry, growing_pause

#: What SIGKILL may take until a process is gone (seconds).
KILL_S = 5.0

#: An agent that ends before it is so old (seconds) is followed by the next one after a pause, one
#: after that after a longer one: others go on meanwhile, and what ended it may pass.
SHORT_LIFE_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 60.0

_log = logging.getLogger("bequeath.backends.local")


class LocalProcess:
    """See :class:`dispatcher.platforms.agents.process.AgentProcess`. Thread: the engine's.

    Args:
        folder: the experiment's, where the process is on record.
        worker: the agent's name.
        run_folder: below it lie the session files of all that the agent runs.
        clock: monotonic seconds.
    """

    place = "this machine"
    ends_at = None

    def __init__(
        self,
        folder: Path,
        worker: str,
        run_folder: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.trouble = ""
        self.outdated = False  # a head before us started it, with other code than is here now
        self._folder = folder
        self._worker = worker
        self._run_folder = run_folder
        self._record_path = record_path(folder, worker)
        self._config_path = config_path(folder, worker)
        self._record: AgentRecord | None = None
        self._is_our_child = False  # else a head before us started it
        self._failure: Loss | None = None
        self._wanted: AgentConfig | None = None  # of the next one
        self._dying: AgentRecord | None = None  # was given up, and has not gone yet
        self._kill_at = float("-inf")  # when the dying one has had its time
        self._clock = clock
        self._had_at = float("-inf")  # when the one on record was started or taken up
        self._short_lives = 0  # in a row
        self._not_before = float("-inf")  # when the next one may be started

    def waiting(self) -> None:
        """Never: this machine is there."""

    @property
    def pid(self) -> int | None:
        """Process id; None if there is no process, or it was forgotten."""
        return self._record.pid if self._record is not None else None

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return self._record is not None and self._runs(self._record)

    def _runs(self, record: AgentRecord) -> bool:
        if self._is_our_child:
            try:
                os.waitpid(record.pid, os.WNOHANG)
            except ChildProcessError:
                return False
        return is_running(record)

    def ensure(self, config: AgentConfig) -> None:
        """Find the one that a head before us has left running, or start one: at once, or when
        the one before is gone and its pause is over."""
        if self._record is None:
            self._wanted = config
            self._go_on()

    def _go_on(self) -> None:
        if self._dying is not None:
            if self._runs(self._dying):
                if self._clock() >= self._kill_at:
                    _signal(self._dying, signal.SIGKILL)
                self.trouble = "the agent of this machine was given up and has not ended yet"
                return
            self._dying = None
            self._gone()
        if self._wanted is None or self._clock() < self._not_before:
            return
        config, self._wanted, self.trouble = self._wanted, None, ""
        self._had_at = self._clock()
        record = read_record(self._record_path)
        if record is not None and is_running(record):
            self._record = record
            self.outdated = not record.code or record.code != installed_code()
            _log.info("taking up agent %s (pid %s) again", self._worker, record.pid)
            # We may be at another address than the head before; its heartbeat, of the epoch
            # before ours, will be answered.
            self._write_config(config)
            return
        if record is not None:
            self._sweep()
        try:
            self._launch(config)
        except OSError as error:
            self._failure = Loss(f"cannot start the agent: {error.strerror}")

    def look(self, silent_s: float) -> Loss | None:
        """Whether it could not be started, or has ended."""
        if self._record is None:
            self._go_on()
        failure, self._failure = self._failure, None
        if failure is None and self._record is not None and not self.alive:
            return Loss("its process ended", left_by_another=not self._is_our_child)
        return failure

    def expects(self, pid: int, ticket: str = "") -> bool | None:
        """Whether it is the one on record, if there is one."""
        if self._dying is not None and self._dying.pid == pid:
            return False
        return self.pid in (None, pid)

    def give_up(self, grace_s: float = 0.0) -> None:
        """Kill it, if it lives and has had its time to leave, and what it ran once it is gone: it
        cannot start more then."""
        now = self._clock()
        was_short = not grace_s and now - self._had_at < SHORT_LIFE_S
        self._short_lives = self._short_lives + 1 if was_short else 0
        if self._short_lives:
            pause_s = growing_pause(self._short_lives, FIRST_PAUSE_S, LONGEST_PAUSE_S)
            self._not_before = now + pause_s
            self.trouble = "the agent of this machine ended soon; the next one waits for a moment"
        self._wanted = None
        if self.alive:
            self._dying, self._record = self._record, None
            self._kill_at = now + grace_s
            self._go_on()
        else:
            self._gone()

    def terminate(self) -> None:
        """Send SIGTERM: it ends its trials with their grace."""
        if self._record is not None:
            _signal(self._record, signal.SIGTERM)

    def end(self, until: float) -> None:
        """Wait for its end; then send SIGKILL, and end what it ran."""
        self._wanted = None
        if self._dying is not None:
            self._record, self._dying = self._dying, None
            until = time.monotonic()
        if self._record is None:
            return
        if not self._wait_until_gone(until):
            _signal(self._record, signal.SIGKILL)
            self._wait_until_gone(time.monotonic() + KILL_S)
            self._sweep()
        self._forget()

    def leave(self) -> None:
        """Do nothing: it is on record, and needs nothing of us."""

    def _write_config(self, config: AgentConfig) -> None:
        """Write the configuration: it reads it at its start, and when it looks for its head."""
        write_private(self._config_path, encode_config(config))

    def _launch(self, config: AgentConfig) -> None:
        """Start one. It leads a session of its own and outlives us. Raises ``OSError``."""
        self._write_config(config)
        self._record = start_agent(self._folder, self._worker, code=installed_code())
        self._is_our_child, self.outdated = True, False

    def _wait_until_gone(self, until: float) -> bool:
        """Block to this moment of the monotonic clock at most; false if it is still there."""
        tries = Retry(0.01, 0.2)
        timeout_s = until - time.monotonic()
        while self.alive:
            if not tries.pause(timeout_s):
                return False
        return True

    def _gone(self) -> None:
        self._forget()
        self._sweep()

    def _forget(self) -> None:
        """Drop its record: it is gone, or given up."""
        self._record = None
        self._is_our_child = False
        self._record_path.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """End the trials that a dead agent left: nobody else would."""
        killed = kill_sessions_below(self._run_folder)
        if killed:
            _log.warning("ended %d processes that a dead agent left behind", killed)


def _signal(record: AgentRecord, number: int) -> None:
    try:
        os.kill(record.pid, number)
    except ProcessLookupError:
        pass
