"""The head's side: starts the tuner host's process, talks to it, notices its end."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from dispatcher.core.actions import Assess, LaunchTuner, TunerAction
from dispatcher.core.events import Event, TunerHostLost
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.ports import PeerLink, ShownPast
from dispatcher.tuner_host import config as config_file
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.messages import (
    Hello,
    Note,
    ShownWanted,
    Shutdown,
    TunerBroken,
    decode_from_host,
    encode,
)
from dispatcher.tuner_host.output import LOG_BYTES, Output
from trial_runtime import descriptors
from trial_runtime.agent.processes.sweep import has_ended
from trial_runtime.failpoints import failpoint

#: As in wind_down.py, which only the child imports.
EXIT_BROKEN = 66

#: How much of the process's last output a report of its end holds.
LAST_LINES = 20
LAST_BYTES = 8_192

#: Share of a deadline that the process gets to end by itself; the rest is for killing it.
_SHUTDOWN_SHARE = 0.8

#: Seconds between two looks at a process that was asked to end.
_LOOK_S = 0.01


class TunerHostDriver:
    """Implements :class:`dispatcher.ports.TunerPort`.

    Runs in the engine's thread; only ``close`` waits.

    Args:
        link: the host's place on the ROUTER; each start uses a new routing id.
        config: the host's configuration; routing id, pipe and failure file are set here.
        folder: the experiment's folder: ``logs/tuner.log`` gets all that the tuner prints.
        on_note: takes a text that a user should read (threads refused, answers that differ after
            a restore); the log has it, too.
        shown: writes the metrics reported so far, for a host that asks; None: hosts do not ask.
    """

    def __init__(
        self,
        link: PeerLink,
        config: TunerHostConfig,
        folder: Path,
        *,
        on_note: Callable[[str], None] | None = None,
        shown: ShownPast | None = None,
    ) -> None:
        self._link = link
        self._config = config
        self._folder = folder
        self._on_note = on_note
        self._shown = shown
        self._log_path = ExperimentFolder(folder).tuner_log
        self._output: Output | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._head_pipe = -1
        self._gathered: list[object] = []
        self._unsent: list[bytes] = []
        self._heard = False
        self._lost = True  # there is no process whose messages count

    # ---- TunerPort -----------------------------------------------------------------------

    def perform(self, action: TunerAction) -> None:
        """Gather an action for :meth:`flush`, or start the process."""
        if isinstance(action, LaunchTuner):
            self._launch()
        elif self._lost and isinstance(action, Assess):
            pass  # the next process gets it from the journal
        else:
            self._gathered.append(action)

    def flush(self) -> None:
        """Send the gathered actions."""
        if self._gathered:
            self._unsent.extend(encode(self._gathered))
            self._gathered.clear()
        while self._unsent and self._link.send(self._unsent[0]):
            del self._unsent[0]

    def receive(self, payload: bytes) -> list[Event]:
        """Decode the events of a frame; none from a host that was given up.

        Raises:
            ProtocolError: it holds a message that a host may not send.
        """
        if self._lost:
            return []
        events: list[Event] = []
        for message in decode_from_host(payload):
            match message:
                case Hello():
                    self._heard = True
                case Note(text=text):
                    if self._on_note is not None:
                        self._on_note(text)
                case ShownWanted():
                    if self._shown is not None:
                        self._shown.write()
                case TunerBroken(reason=reason):
                    events.append(self._give_up(reason, fatal=True))
                case _:
                    events.append(message)
        return events

    def check(self) -> list[Event]:
        """Return an event, once, if the process has ended.

        Silence is no end: a tuner may compute under the interpreter's lock for as long as it
        likes.

        Raises:
            StoreError: the metrics that it has asked for cannot be read.
        """
        if self._unsent:
            self.flush()
        if self._shown is not None:
            self._shown.check()
        process = self._process
        if process is None or self._lost or not _has_ended(process):
            return []
        if process.returncode == EXIT_BROKEN:
            return [self._give_up(_read(self._failure_file), fatal=True)]
        return [self._give_up(self._how_it_ended(process.returncode), fatal=False)]

    def close(self, deadline_s: float) -> None:
        """End the process, and wait for that: ask it, so that ``_on_exit`` runs, then kill it."""
        process, listens = self._process, self._heard and not self._lost
        self._lost = True
        if self._shown is not None:
            self._shown.close()
        if process is None:
            return
        if listens and not _has_ended(process):
            self._link.send(encode([Shutdown(_SHUTDOWN_SHARE * deadline_s)])[0])
            give_up = time.monotonic() + deadline_s
            while not _has_ended(process) and time.monotonic() < give_up:
                time.sleep(_LOOK_S)
        self._end_process(process)

    @property
    def pid(self) -> int | None:
        """The process's id, None before the first start."""
        return self._process.pid if self._process is not None else None

    def settle_log(self) -> None:
        """Wait, not for long, until all output so far is in the tuner's log."""
        if self._output is not None:
            self._output.settle()

    # ---- the process ---------------------------------------------------------------------

    @property
    def _failure_file(self) -> Path:
        return self._folder / "tuner_failure.txt"

    def _launch(self) -> None:
        if self._process is not None:
            self._end_process(self._process)
        routing_id = f"tuner:{secrets.token_hex(16)}"
        self._link.renew(routing_id)
        self._gathered.clear()
        self._unsent.clear()
        self._failure_file.unlink(missing_ok=True)
        if self._shown is not None:
            self._shown.forget()
        ours, self._head_pipe = os.pipe()
        config = msgspec.structs.replace(
            self._config,
            endpoint=msgspec.structs.replace(self._config.endpoint, routing_id=routing_id),
            head_pipe=ours,
            failure_file=str(self._failure_file),
            leader_file=str(ExperimentFolder(self._folder).leader),
            shown=str(self._shown.path) if self._shown is not None else "",
        )
        path = self._folder / "tuner_host.json"
        config_file.write(config, path)
        self._output = Output(self._log_path, max_bytes=LOG_BYTES)
        try:
            self._process = _spawn(path, self._output.write_end, ours)
        finally:
            os.close(ours)
            self._output.begin()
        failpoint("launch.tuner.spawned")
        self._heard = self._lost = False

    def _end_process(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the process and those that it started, if they still run, and reap it."""
        if not _has_ended(process):
            self._kill_group(process)
            process.wait()
        if self._head_pipe >= 0:
            os.close(self._head_pipe)
            self._head_pipe = -1
        if self._output is not None:
            self._output.finish()

    def _kill_group(self, process: subprocess.Popen[bytes]) -> None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all gone
        except PermissionError:
            process.kill()  # macOS: a group of zombies

    # ---- its end -------------------------------------------------------------------------

    def _give_up(self, reason: str, *, fatal: bool) -> TunerHostLost:
        self._lost = True
        self._gathered.clear()
        self._unsent.clear()
        if self._shown is not None:
            self._shown.forget()
        return TunerHostLost(reason, fatal=fatal)

    def _how_it_ended(self, code: int) -> str:
        if code < 0:
            try:
                how = f"was ended by {signal.Signals(-code).name}"
            except ValueError:
                how = f"was ended by signal {-code}"
        else:
            how = f"exited with code {code}"
        output = self._last_output()
        ending = f"; its last lines:\n{output}" if output else "; it printed nothing"
        return f"the tuner host {how}{ending}"

    def _last_output(self) -> str:
        if self._output is None:
            return ""
        self._output.finish()
        return self._output.last_lines(LAST_LINES, LAST_BYTES)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process is gone, and reaped.

    Processes that it had started and left behind are ended before that, while no other group can
    have its number; hours later a trial's may.
    """
    if process.returncode is None:
        try:
            if not has_ended(process.pid):
                return False
        except ChildProcessError:
            pass  # reaped already
        process.poll()
    return True


def _spawn(config: Path, log: int, pipe: int) -> subprocess.Popen[bytes]:
    """Start the process in our own folder, where ``dispatcher`` can be imported whether or not it
    is installed; it changes to the author's folder afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dispatcher.tuner_host", str(config)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=Path(__file__).resolve().parents[2],
        pass_fds=(pipe,),
        start_new_session=True,  # only the head handles Ctrl-C
    )
    descriptors.give_back(process.pid)
    return process


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return "the tuner cannot be built, and could not report why"
