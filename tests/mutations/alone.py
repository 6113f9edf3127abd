"""``python alone.py COMMAND…``: run a command, and end with it all that it has started.

Tests start heads and agents that are nobody's children and have sessions of their own. Here they
become children of this process, which ends them when the command is over, or when its own standard
input is closed: whoever started it is gone, or has waited long enough. Exits as the command does.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

import psutil

#: ``prctl(2)``: orphans below this process come to it.
PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """Run it; its exit code, as a shell has it."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no subreaper")
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)

    def end_when_nobody_waits() -> None:
        sys.stdin.buffer.read()
        with contextlib.suppress(ProcessLookupError):
            os.kill(command.pid, signal.SIGKILL)

    threading.Thread(target=end_when_nobody_waits, daemon=True).start()
    ended, status = 0, 0
    while ended != command.pid:  # orphans are reaped, as their tests expect it
        ended, status = os.waitpid(-1, 0)
    _end_all_below()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_all_below() -> None:
    """Until there are none: one that is killed may have started others just before."""
    while below := psutil.Process().children(recursive=True):
        for process in below:
            with contextlib.suppress(psutil.Error):
                process.kill()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


if __name__ == "__main__":
    # Not by way of the interpreter's end, which would wait for the thread that reads.
    os._exit(main())
