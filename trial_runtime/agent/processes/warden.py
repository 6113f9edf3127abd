"""A program that ends the processes of an agent once the agent is gone, however it went.

The kernel ends a trial's first process with its agent, but not the processes that it had started
in turn, such as the Python of ``python train.py | tee log``. A head ends those. When head and
agent are killed together, only this program is left.

It is started by :mod:`trial_runtime.agent.processes.guard` with the agent's mark as its argument,
and with a pipe as its standard input whose other end nobody but the agent holds: the pipe ends with
the agent. It needs only Python's own modules, and knows processes by the mark in the environment
that they were started with, and by the session of those that have it.
"""

from __future__ import annotations

import os
import signal
import sys
import time

#: Rounds until those are given up that start others as fast as they are ended.
ROUNDS = 64

#: Together, so long (seconds) the environment of processes is waited for that are just beginning
#: another program.
BEGINS_S = 2.0

# Flags of a process: it is about to end, it is a thread of the kernel. Neither has an environment.
_NO_ENVIRONMENT = 0x00000004 | 0x00200000


def main() -> None:
    """Wait for the end of the agent, then end the processes that it ran."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it leaves with the agent, and after it
    theirs = os.getsid(os.getppid())
    while os.read(0, 4096):
        pass
    end_marked(sys.argv[1].encode(), {theirs, os.getsid(0)})


def end_marked(mark: bytes, spared: set[int]) -> int:
    """SIGKILL all processes with this entry in their environment, and those of their sessions,
    but for the sessions that are spared; returns how many.

    Repeats until no new one is found, since a killed process may just have started another one.
    """
    killed: set[int] = set()
    until = time.monotonic() + BEGINS_S
    for _round in range(ROUNDS):
        found, beginning = _marked(mark, spared)
        pids = found - killed
        if not pids and not (beginning and any_has_begun(beginning, until)):
            break
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        killed |= pids
    return len(killed)


def _marked(mark: bytes, spared: set[int]) -> tuple[set[int], set[int]]:
    """The marked processes with all of their sessions, in which there are only trials' own; and
    those of which that is not known yet."""
    session_of: dict[int, int] = {}
    sessions: set[int] = set()
    beginning: set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        try:
            session_of[pid] = session = os.getsid(pid)
        except OSError:
            continue  # gone by now
        environment = environment_of(pid)
        if environment is None:
            beginning.add(pid)
        elif mark in environment.split(b"\0"):
            sessions.add(session)
    found = {pid for pid, session in session_of.items() if session in sessions - spared}
    return found, {pid for pid in beginning - found if session_of[pid] not in spared}


def environment_of(pid: int) -> bytes | None:
    """The environment that a process was started with; None if it is not there yet.

    A process that takes up another program has none for a moment, long after whoever started it
    knows its number. Empty where there is none: it has ended, or is another user's.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            if content := file.read():
                return content
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return b""
    state, flags, code = fields[0], int(fields[6]), int(fields[23])
    if state in b"ZXx" or flags & _NO_ENVIRONMENT:
        return b""
    # The kernel notes where the code begins only after it has laid out the environment. While it
    # does that, the environment's end is where it starts, as if there were none.
    start, end = int(fields[47]), int(fields[48])
    return None if code == 0 or end > start else b""


def any_has_begun(pids: set[int], until: float) -> bool:
    """Whether one of them has its environment by now, or ends. Waits until this moment of the
    monotonic clock at most."""
    while all(environment_of(pid) is None for pid in pids):
        if time.monotonic() >= until:
            return False
        time.sleep(0.001)
    return True


if __name__ == "__main__":
    main()
