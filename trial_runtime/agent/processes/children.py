"""Starting a process of a trial, and noticing that it has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from trial_runtime.agent.attempt import CannotStart, Exit
from trial_runtime.agent.base.loop import Watch
from trial_runtime.agent.processes.sweep import has_ended
from trial_runtime.safe_path import code_arguments


def python_command(code: str) -> list[str]:
    """The command of a Python that runs ``code`` with the agent's ``trial_runtime``.

    Neither the current folder nor the code directory can put another one in front of it.
    """
    return [sys.executable, *code_arguments(code)]


def spawn(
    command: Sequence[str],
    *,
    folder: str,
    environment: dict[str, str],
    stdout: int,
    stderr: int,
    pass_fds: Sequence[int] = (),
    cores: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own.

    Never with ``preexec_fn``: that would forbid vfork, whose cost does not grow with us.

    Args:
        command: the program and its arguments.
        folder: the current folder of the process.
        environment: all of its variables.
        stdout: a descriptor.
        stderr: a descriptor.
        pass_fds: further descriptors that it inherits.
        cores: those it is pinned to from its first moment; all, if empty.

    Raises:
        CannotStart: the folder or the program is missing, or the machine is out of processes.
    """
    ours = os.sched_getaffinity(0) if cores else set()
    try:
        if cores:  # the process inherits what this thread is pinned to
            os.sched_setaffinity(0, cores)
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except OSError as error:
        missing = f": {error.filename}" if error.filename else ""
        raise CannotStart(f"cannot start {command[0]}: {error.strerror}{missing}") from error
    finally:
        if cores:
            os.sched_setaffinity(0, ours)


def _kernel_has_pidfds() -> bool:
    """Whether the kernel has pidfds: before 5.3, and in some sandboxes, only Python has them."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


class ChildWatch:
    """Calls back, in the loop, when a child of ours has ended and was reaped.

    On Linux each child is a descriptor in the loop's selector; where the kernel gives none,
    ``SIGCHLD`` makes the loop ask all of them.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._children: dict[int, tuple[int, Callable[[Exit], None]]] = {}
        self._have_pidfd = _kernel_has_pidfds()
        if not self._have_pidfd:
            watch.on_signal(signal.SIGCHLD, self.ask_all)

    def add(self, pid: int, ended: Callable[[Exit], None]) -> None:
        """Watch a child that leads a process group of its own."""
        if not self._have_pidfd:
            self._children[pid] = (-1, ended)
            return
        descriptor = os.pidfd_open(pid)
        self._children[pid] = (descriptor, ended)
        self._watch.add(descriptor, lambda: self._ended(pid))

    def pids(self) -> set[int]:
        """The children watched now."""
        return set(self._children)

    def ask_all(self) -> None:
        """Check each child (where there are no pidfds)."""
        for pid in list(self._children):
            self._ended(pid)

    def _ended(self, pid: int) -> None:
        try:
            if not has_ended(pid):
                return
            _, status, usage = os.wait4(pid, 0)
            outcome = exit_of(status, usage.ru_utime + usage.ru_stime)
        except ChildProcessError:
            outcome = Exit(lost=True, text="its exit status was taken by somebody else")
        descriptor, ended = self._children.pop(pid)
        if descriptor >= 0:
            self._watch.remove(descriptor)
            os.close(descriptor)
        ended(outcome)


def exit_of(status: int, cpu_s: float) -> Exit:
    """A wait status as an exit."""
    if os.WIFSIGNALED(status):
        return Exit(signal=os.WTERMSIG(status), cpu_s=cpu_s)
    return Exit(code=os.waitstatus_to_exitcode(status), cpu_s=cpu_s)
