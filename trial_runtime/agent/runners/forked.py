"""Running attempts as forks of a server that has imported the heavy modules."""

from __future__ import annotations

import array
import errno
import logging
import os
import signal
import socket
import sys

import msgspec

from trial_runtime.agent.attempt import Attempt, CannotStart, Exit
from trial_runtime.agent.processes.children import exit_of, python_command, spawn
from trial_runtime.agent.processes.sweep import kill_group, signal_group
from trial_runtime.agent.runners import zygote
from trial_runtime.agent.runners.runner import ProcessRunner, RunnerContext
from trial_runtime.session_file import SESSION_VARIABLE, write_session

_log = logging.getLogger("bequeath.agent")
_encoder = msgspec.msgpack.Encoder()
_replies: msgspec.msgpack.Decoder[zygote.FromZygote] = msgspec.msgpack.Decoder(zygote.FromZygote)

# A socket that holds no more, or a system that lets no more descriptors be under way.
_FULL = (errno.EAGAIN, errno.ENOBUFS, errno.ETOOMANYREFS)

# Messages with boundaries that carry descriptors; macOS has no SEQPACKET for this family.
_KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM


class ForkedRunner(ProcessRunner):
    """See :class:`trial_runtime.agent.runners.runner.Runner`.

    The first attempt starts the server, and the next one after it died starts it again.
    """

    sweeps_at_once = True

    def __init__(self, context: RunnerContext) -> None:
        super().__init__(context)
        self._channel: socket.socket | None = None
        self._server_pid = 0
        self._server_fault = ""
        self._attempts: dict[tuple[int, int], Attempt] = {}
        self._kill_when_known: set[tuple[int, int]] = set()
        # Attempts that the server could not be asked for yet: it takes nothing while it imports.
        self._waiting: dict[tuple[int, int], Attempt] = {}

    def launch(self, attempt: Attempt) -> None:
        channel = self._channel or self._start_server()
        self._context.dialect.furnish_session(attempt)
        write_session(attempt.session_path, attempt.session)
        if self._waiting or not self._ask_for(attempt, channel):
            self._waiting[attempt.key] = attempt

    def _ask_for(self, attempt: Attempt, channel: socket.socket) -> bool:
        """Ask the server for a fork; false if its socket is still full of earlier requests.

        Its next answer shows that there is room.
        """
        ends = self._context.outputs.open(attempt)
        request = _encoder.encode(zygote.Fork(attempt.key, attempt.session_path))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", ends))]
        try:
            channel.sendmsg([request], rights)
        except OSError as error:
            if error.errno in _FULL and any(not each.pid for each in self._attempts.values()):
                self._context.outputs.finish(attempt)
                return False
            raise CannotStart(f"the fork server does not listen: {error.strerror}") from error
        finally:
            for end in ends:
                os.close(end)
        self._attempts[attempt.key] = attempt
        self._admit(attempt)
        return True

    def _ask_for_those_that_wait(self) -> None:
        while self._waiting and self._channel is not None:
            key, attempt = next(iter(self._waiting.items()))
            try:
                if not self._ask_for(attempt, self._channel):
                    return
            except (CannotStart, OSError) as error:
                self._context.events.exited(attempt, Exit(code=1, text=str(error)))
            self._waiting.pop(key, None)

    def terminate(self, attempt: Attempt) -> None:
        if attempt.exit is None and attempt.pid:
            _signal(attempt.pid, signal.SIGTERM)

    def kill(self, attempt: Attempt) -> None:
        if attempt.exit is not None:
            return
        if attempt.pid:
            _signal(attempt.pid, signal.SIGKILL)
        else:
            self._kill_when_known.add(attempt.key)

    def forget(self, attempt: Attempt) -> None:
        super().forget(attempt)
        self._attempts.pop(attempt.key, None)
        self._waiting.pop(attempt.key, None)
        self._kill_when_known.discard(attempt.key)

    def close(self) -> None:
        for attempt in self._attempts.values():
            self.kill(attempt)
        if self._server_pid:
            kill_group(self._server_pid)

    def _start_server(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, _KIND)
        environment = self._context.environment()
        changed = {k: environment[k] for k in zygote.ALLOCATOR if k in environment}
        file = zygote.ZygoteFile(
            os.getpid(),
            self._context.spec.preload,
            self._context.spec.code_directory,
            self._context.spec.command,
            changed,
        )
        environment[zygote.ZYGOTE_VARIABLE] = msgspec.json.encode(file).decode()
        environment[SESSION_VARIABLE] = ""  # forks do not change what /proc shows of them
        environment.update(zygote.ALLOCATOR)
        code = f"from trial_runtime.agent.runners.zygote import main; main({theirs.fileno()})"
        try:
            process = spawn(
                python_command(code),
                folder=self._context.spec.code_directory,
                environment=environment,
                stdout=2,  # the agent's own log: no trial runs yet
                stderr=2,
                pass_fds=(theirs.fileno(),),
            )
        except CannotStart:
            ours.close()
            raise
        finally:
            theirs.close()
        process.returncode = 0  # reaped through ChildWatch
        ours.setblocking(False)
        self._channel = ours
        self._server_pid = process.pid
        self._server_fault = ""
        self._context.watch.add(ours.fileno(), self._hear)
        self._context.children.add(process.pid, self._server_died)
        return ours

    def _hear(self) -> None:
        while self._channel is not None:
            try:
                content = self._channel.recv(1 << 16)
            except BlockingIOError:
                self._ask_for_those_that_wait()
                return
            except ConnectionError:
                content = b""
            if not content:
                self._context.watch.remove(self._channel.fileno())
                return  # its exit follows
            self._take(_replies.decode(content))

    def _take(self, message: zygote.FromZygote) -> None:
        if isinstance(message, zygote.Broken) and message.key is None:
            self._server_fault = message.text
            return
        attempt = self._attempts.get(message.key)  # type: ignore[arg-type]
        if attempt is None:
            return
        if isinstance(message, zygote.Forked):
            attempt.pid = message.pid
            if attempt.key in self._kill_when_known:
                _signal(message.pid, signal.SIGKILL)
            elif attempt.stop_reason is not None:  # before there was a process to signal
                self.terminate(attempt)
            self._context.events.started(attempt)
        elif isinstance(message, zygote.ChildEnded):
            # Reaped by the server, so its number may belong to somebody else by now; its
            # orphans are the agent's children and are swept from there.
            self._context.events.exited(attempt, exit_of(message.status, message.cpu_s))
        else:
            self._context.events.exited(attempt, Exit(code=1, text=message.text))

    def _server_died(self, outcome: Exit) -> None:
        self._hear()
        if self._channel is not None:
            self._context.watch.remove(self._channel.fileno())
            self._channel.close()
            self._channel = None
        self._server_pid = 0
        text = self._server_fault or f"the fork server ended ({outcome.signal or outcome.code})"
        _log.warning("%s", text)
        waiting, self._waiting = self._waiting, {}
        for attempt in [*self._attempts.values(), *waiting.values()]:
            if attempt.exit is None:
                # Its parent-death signal ends it; make sure of its group.
                if attempt.pid:
                    _signal(attempt.pid, signal.SIGKILL)
                self._context.events.exited(attempt, Exit(code=1, text=text))


def _signal(pid: int, number: int) -> None:
    """Signal the group of a forked child; the child alone if it has not made one yet."""
    if not signal_group(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
