"""Finding and ending the processes that a trial leaves behind.

The agent is a subreaper: when a process of a trial loses its parent, it becomes a child of
the agent, wherever it moved itself. So leftovers are the agent's unknown children, and no
list of all processes of the machine has to be read at each trial's end.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from trial_runtime.agent.processes.warden import (
    BEGINS_S,
    ROUNDS,
    any_has_begun,
    environment_of,
)
from trial_runtime.session_file import AGENT_VARIABLE, MARKER_VARIABLE, SESSION_VARIABLE

_ON_LINUX = sys.platform == "linux"
_MARKS = (f"{SESSION_VARIABLE}=".encode(), f"{MARKER_VARIABLE}=".encode())
# Children of a forked trial have the environment of its server, with this mark alone.
_AGENTS_MARK = f"{AGENT_VARIABLE}=".encode()
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


_libc: Any = None  # opened once: the fork server's children find it open


def become_subreaper() -> bool:
    """Make orphaned descendants this process's children; false where there is no such thing."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Let this process be killed when the thread that started it ends (Linux).

    ``parent`` is the pid that must still be our parent, in case it died before the call.
    """
    if _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> bool:
    if not _ON_LINUX:
        return False
    global _libc
    if _libc is None:
        import ctypes

        _libc = ctypes.CDLL(None, use_errno=True)
    answer: int = _libc.prctl(option, value, 0, 0, 0)
    return answer == 0


def kill_group(leader: int) -> None:
    """SIGKILL a process group; call it before its leader is reaped, while the number is its own."""
    signal_group(leader, signal.SIGKILL)


def signal_group(leader: int, number: int) -> bool:
    """Send a signal to a process group; false if there is none any more."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def has_ended(pid: int) -> bool:
    """Whether a child that leads a group is a zombie now; if so, ends the rest of its group.

    The group is ended before the reaping, while its number cannot belong to another group. Where
    that is impossible (macOS before Python 3.13), after it; raises ``ChildProcessError`` if
    somebody else has reaped it.
    """
    if hasattr(os, "waitid"):
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return False
    elif is_alive(pid):
        return False
    kill_group(pid)
    return True


def is_alive(pid: int) -> bool:
    """Whether a process runs, asked without reaping it."""
    import psutil

    try:
        status: str = psutil.Process(pid).status()
    except psutil.Error:
        return False
    return bool(status != psutil.STATUS_ZOMBIE)


def children() -> list[int]:
    """The children of this process, zombies included; empty where there is no such list.

    It lists the children of the main thread, which starts all processes; the kernel gives orphans
    to the first living thread of a process.
    """
    if not _ON_LINUX:
        return []
    pid = os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb", buffering=0) as file:
            return [int(each) for each in file.readall().split()]
    except OSError:
        return []


def session_of(pid: int) -> str | None:
    """The session file (or marker) that a process was started with, None if there is none."""
    return next(_values_in(environment_of(pid) or b"", _MARKS), None)


def _values_in(environment: bytes, variables: tuple[bytes, ...]) -> Iterator[str]:
    """The values of these variables in an environment."""
    for entry in environment.split(b"\0"):
        if entry.startswith(variables):
            yield os.fsdecode(entry.partition(b"=")[2])


def reap(pid: int) -> bool:
    """Collect an orphan that has ended; false if it has not, or is no child of ours."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


def belongs(pid: int, session_path: str, leader: int) -> bool:
    """Whether a process belongs to an attempt.

    Args:
        pid: the process.
        session_path: the attempt's session file, or marker.
        leader: the attempt's first process, whose session and group belong to it; 0: none.
    """
    try:
        if leader and leader in (os.getsid(pid), os.getpgid(pid)):
            return True
    except ProcessLookupError:
        return False
    return session_of(pid) == session_path


def kill_and_reap(pid: int) -> None:
    """SIGKILL a child of ours and collect it; waits the moment that dying takes."""
    kill(pid)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass


def kill(pid: int) -> None:
    """SIGKILL one process."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def kill_sessions_below(folder: str) -> int:
    """SIGKILL every process whose session file lies below ``folder``, or that an agent with this
    run folder has marked; returns how many.

    For a head that finds its agent dead. Reads the process list of the machine until it shows no
    new one, since a killed process may just have started another one. Those that are just beginning
    are waited for, two seconds at most.
    """
    if not _ON_LINUX:
        return 0
    inside = folder.rstrip("/") + "/"
    killed: set[int] = set()
    until = time.monotonic() + BEGINS_S
    for _round in range(ROUNDS):
        found, beginning = _sessions_below(inside)
        pids = found - killed
        if not pids and not (beginning and any_has_begun(beginning, until)):
            break
        for pid in pids:
            kill(pid)
        killed |= pids
    return len(killed)


def _sessions_below(inside: str) -> tuple[set[int], set[int]]:
    """The processes whose session is below, and those of which that is not known yet."""
    found: set[int] = set()
    beginning: set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit() or (pid := int(name)) == os.getpid():
            continue
        environment = environment_of(pid)
        if environment is None:
            beginning.add(pid)
        elif any(x.startswith(inside) for x in _values_in(environment, (*_MARKS, _AGENTS_MARK))):
            found.add(pid)
    return found, beginning


def sweep_where(own: Collection[int], mine: Callable[[int], bool]) -> None:
    """Kill children of ours for which ``mine`` holds, until none turns up; never ``own``."""
    for _round in range(64):  # a killed process hands its own children to us
        found = False
        for pid in children():
            if pid not in own and not reap(pid) and mine(pid):
                kill_and_reap(pid)
                found = True
        if not found:
            return
