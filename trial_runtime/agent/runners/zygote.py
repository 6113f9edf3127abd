"""The fork server: a process that has imported the heavy modules and forks a child per trial.

It has one thread, so that forking is safe, and no ZeroMQ context: each child opens its own.
After ``gc.freeze`` a child's garbage collector leaves the shared pages alone.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Optional, Union
from weakref import WeakSet

import msgspec

from trial_runtime import session as sessions
from trial_runtime.agent.processes.sweep import die_with_parent, has_ended
from trial_runtime.agent.runners.calling import (
    Result,
    attempt_call,
    flush_streams,
    leave,
    preload,
    put_code_first,
)
from trial_runtime.agent.runners.calling import run as run_function
from trial_runtime.agent.runners.rehearsal import rehearse
from trial_runtime.agent.runners.scripts import Script, run_script, script_of
from trial_runtime.agent.runners.settling import settle
from trial_runtime.agent.runners.workplace import make_workplace
from trial_runtime.checkpoints import make_folder
from trial_runtime.session_file import CHECKPOINTS_VARIABLE, SESSION_VARIABLE, read_session

ZYGOTE_VARIABLE = "BEQUEATH_ZYGOTE"

#: Variables that make forking cheap (large pages: fewer page tables to copy), for the fork
#: server only: programs that a trial starts must not inherit them.
ALLOCATOR = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}


class ZygoteFile(msgspec.Struct, frozen=True):
    """The configuration of the fork server, in its environment (nothing secret)."""

    parent: int
    preload: tuple[str, ...]
    code_directory: str
    command: Optional[str]
    restore: dict[str, str]  # variables as trials should see them


class Fork(msgspec.Struct, frozen=True, array_like=True, tag="f"):
    """Fork a child for the attempt of this session file; its two output pipes come along."""

    key: tuple[int, int]
    session: str


class Forked(msgspec.Struct, frozen=True, array_like=True, tag="p"):
    """The child has started."""

    key: tuple[int, int]
    pid: int


class ChildEnded(msgspec.Struct, frozen=True, array_like=True, tag="e"):
    """A child has ended, with this wait status."""

    key: tuple[int, int]
    status: int
    cpu_s: float


class Broken(msgspec.Struct, frozen=True, array_like=True, tag="b"):
    """Preloading failed, or a fork did (with its ``key``)."""

    text: str
    key: Optional[tuple[int, int]] = None


FromZygote = Union[Forked, ChildEnded, Broken]

#: Each function of Python that a child calls first costs it copies of five to eight pages, so it
#: calls what ``signal.signal`` wraps in conversions to enumerations and back.
_handle_signal = getattr(signal.signal, "__wrapped__", signal.signal)
_SIGCHLD, _SIG_DFL = int(signal.SIGCHLD), int(signal.SIG_DFL)

#: Where ``logging`` keeps the handlers whose locks a forked child makes anew.
_HANDLERS = "_at_fork_reinit_lock_weakset"
_NO_HANDLERS: WeakSet[logging.Handler] = WeakSet()
_MANY_HANDLERS = 8  # fewer cost less than setting them aside
_encoder = msgspec.msgpack.Encoder()
_forks: msgspec.msgpack.Decoder[Fork] = msgspec.msgpack.Decoder(Fork)


def main(descriptor: int) -> None:
    """Serve until the agent closes its end; ends the process."""
    config = msgspec.json.decode(os.environ.pop(ZYGOTE_VARIABLE), type=ZygoteFile)
    for name in (*ALLOCATOR, SESSION_VARIABLE):
        os.environ.pop(name, None)
    os.environ.update(config.restore)
    die_with_parent(config.parent)
    channel = socket.socket(fileno=descriptor)
    put_code_first(config.code_directory)
    script = script_of(config.command) if config.command is not None else None
    preloaded = attempt_call(lambda: preload(config.preload))
    if preloaded.code:
        channel.send(_encoder.encode(Broken(f"preload failed:\n{preloaded.text}"[:60_000])))
        leave(1)
    _keep_needed_exit_handlers()
    _spare_handlers_at_exit()
    rehearse(config.code_directory)
    gc.collect()
    gc.freeze()
    _Zygote(channel, script).serve()


class _Zygote:
    def __init__(self, channel: socket.socket, script: Script | None) -> None:
        self._channel = channel
        self._script = script
        self._fork = _way_to_fork()
        self._children: dict[int, tuple[int, int]] = {}
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)

    def serve(self) -> None:
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        parent = os.getppid()
        while os.getppid() == parent:
            for descriptor, _ in poll.poll(5000):
                if descriptor == self._woken:
                    os.read(self._woken, 4096)
                    self._reap()
                elif not self._take():
                    os._exit(0)
        os._exit(0)

    def _take(self) -> bool:
        try:
            content, descriptors, _, _ = socket.recv_fds(self._channel, 1 << 16, 2)
        except ConnectionError:
            return False
        if not content:
            return False
        request = _forks.decode(content)
        server = os.getpid()
        try:
            pid = self._fork()
        except OSError as error:
            self._send(Broken(f"cannot fork: {error.strerror}", request.key))
        else:
            if pid == 0:
                self._become_trial(request, descriptors, server)
            self._children[pid] = request.key
            self._send(Forked(request.key, pid))
        for each in descriptors:
            os.close(each)
        return True

    def _reap(self) -> None:
        for pid, key in list(self._children.items()):
            if has_ended(pid):
                _, status, usage = os.wait4(pid, 0)
                del self._children[pid]
                self._send(ChildEnded(key, status, usage.ru_utime + usage.ru_stime))

    def _send(self, message: FromZygote) -> None:
        try:
            self._channel.send(_encoder.encode(message))
        except ConnectionError:
            os._exit(0)

    def _become_trial(self, request: Fork, descriptors: list[int], server: int) -> None:
        """Run a trial in the child; never returns.

        ``server`` is the pid of the parent that forked it: ``getppid`` here might name the
        process that adopts the orphans of a server that has just died.
        """
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            _handle_signal(_SIGCHLD, _SIG_DFL)
            os.setsid()
            die_with_parent(server)
            os.dup2(descriptors[0], 1)
            os.dup2(descriptors[1], 2)
            for each in (*descriptors, self._woken, self._wake):
                os.close(each)
            self._channel.close()
            os.environ[SESSION_VARIABLE] = request.session
            _draw_new_numbers()
            result = attempt_call(lambda: self._run(request.session))
            if result.text:
                sys.stderr.write(result.text + "\n")
            code = result.value if result.code == 0 else result.code
        finally:
            flush_streams()
            leave(code)

    def _run(self, path: str) -> int:
        session = sessions.AgentSession(read_session(path))
        sessions.adopt(session)
        settle(session.file)
        if session.file.work_folder:
            os.chdir(make_workplace(session.file.code_directory, session.file.work_folder))
        if self._script is None:
            return run_function(session)
        script = self._script
        if session.file.checkpoints is not None:
            make_folder(session.file.checkpoints)
            os.environ[CHECKPOINTS_VARIABLE] = session.file.checkpoints
        return _as_exit(attempt_call(lambda: run_script(script, session.file.code_directory)))


def _as_exit(result: Result) -> int:
    if result.text:
        sys.stderr.write(result.text + "\n")
    return result.code


def _keep_needed_exit_handlers() -> None:
    """Forget the exit handlers of preloaded modules, but keep those of a trial.

    They are about the server's own state, and torch's take 25 ms. Handlers that a trial registers
    itself run at its end.
    """
    clear = getattr(atexit, "_clear", None)
    if clear is None:
        return
    clear()
    for module, name in (("logging", "shutdown"), ("multiprocessing.util", "_exit_function")):
        handler = getattr(sys.modules.get(module), name, None)
        if handler is not None:
            atexit.register(handler)


def _spare_handlers_at_exit() -> None:
    """Let ``logging.shutdown`` skip the handlers of preloaded modules that it need not flush.

    They flush each record to a standard stream, which is flushed anyway. Torch alone has 36 of
    them, each on pages of its own.
    """
    kept = getattr(logging, "_handlerList", None)
    if kept is not None:
        kept[:] = [each for each in kept if not _is_plain(each())]


def _is_plain(handler: logging.Handler | None) -> bool:
    if type(handler) is logging.NullHandler:
        return True
    return type(handler) is logging.StreamHandler and handler.stream in (sys.stdout, sys.stderr)


def _way_to_fork() -> Callable[[], int]:
    """The function to fork with: ``os.fork``, or one that skips the handlers of ``logging``.

    With many handlers, making the lock of each anew in each child is slow. No lock is held, since
    the one thread of this process forks.
    """
    handlers = getattr(logging, _HANDLERS, ())
    alone = len(sys._current_frames()) == 1  # a module may have started a thread
    return _fork_past_handlers if alone and len(handlers) >= _MANY_HANDLERS else os.fork


def _fork_past_handlers() -> int:
    """Fork without the handlers of ``logging``; a trial's own forks see to them as usual."""
    handlers = getattr(logging, _HANDLERS)
    setattr(logging, _HANDLERS, _NO_HANDLERS)
    try:
        return os.fork()
    finally:
        setattr(logging, _HANDLERS, handlers)


def _draw_new_numbers() -> None:
    """Seed numpy's global generator anew, whose state the children of one server would share.

    Python's own ``random`` does that itself.
    """
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
