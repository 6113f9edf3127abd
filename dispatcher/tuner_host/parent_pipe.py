"""Ends the process with its head, whatever the author's code is doing.

The head alone holds the other end of a pipe. When it is gone the kernel sends SIGIO, whose
default is to end the process: that needs neither a thread nor the interpreter, which a tuner
may be hogging. (A parent-death signal will not do: it also fires when the *thread* that
started us ends, and the head's engine thread ends before its tuner host.) Where the kernel
does not do this for pipes, the I/O thread sees the end of file.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal

#: Seconds between two looks at which head leads, and at whether another parent adopted us. The
#: pipe does not show all: a stopped head that another one replaced holds it for as long as it
#: likes, and so may a process that the head forked without exec (a notebook's), after its end.
LOOK_S = 5.0

_parent = os.getppid()


def is_orphan() -> bool:
    """Whether the process that started this one is gone."""
    return os.getppid() != _parent


def is_superseded(leader_file: str, epoch: int) -> bool:
    """Whether a later head than ours leads, by the file it wrote; false if that is unreadable."""
    try:
        with open(leader_file, "rb") as file:
            return bool(json.load(file)["epoch"] > epoch)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def end_group() -> None:
    """End this process at once, and its group if it leads one. Does not return."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def tie(pipe: int) -> None:
    """Tie this process, and its group if it leads one, to the pipe's other end."""
    os.set_inheritable(pipe, False)
    leads_group = os.getpgrp() == os.getpid()
    # A negative owner is a process group: what the tuner started ends with it.
    owner = -os.getpid() if leads_group else os.getpid()
    flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
    try:
        fcntl.fcntl(pipe, fcntl.F_SETOWN, owner)
        fcntl.fcntl(pipe, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)
    except OSError:
        os.set_blocking(pipe, False)
