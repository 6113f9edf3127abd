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

#: Rounds until those are given up that start others as fast as they are ended.
ROUNDS = 64


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
    for _round in range(ROUNDS):
        pids = _marked(mark, spared) - killed
        if not pids:
            break
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        killed |= pids
    return len(killed)


def _marked(mark: bytes, spared: set[int]) -> set[int]:
    """The marked processes with all of their sessions, in which there are only trials' own."""
    session_of: dict[int, int] = {}
    sessions: set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            session_of[int(name)] = session = os.getsid(int(name))
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    sessions.add(session)
        except OSError:
            continue  # gone by now, or another user's
    return {pid for pid, session in session_of.items() if session in sessions - spared}


if __name__ == "__main__":
    main()
