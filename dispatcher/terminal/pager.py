"""A long text in the user's pager."""

from __future__ import annotations

import fcntl
import os
import shlex
import struct
import subprocess
import sys
import termios
from typing import IO

from dispatcher.safe_text import SafeText


def why_not_in_pager(text: SafeText) -> str | None:
    """Show a text by the program that ``PAGER`` names, else by ``less``, without a shell.

    Blocks until the user has left it.

    Returns:
        None if it was shown, else why not, in a sentence; empty where nobody wants a pager
        (``PAGER=``), or named none and there is no ``less``.
    """
    named = os.environ.get("PAGER")
    try:
        command = shlex.split("less" if named is None else named)
        if not command:
            return ""
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, env={"LESS": "-R", **os.environ}, bufsize=0
        )
    except (OSError, ValueError) as error:  # ValueError: a quote without an end
        why = getattr(error, "strerror", None) or str(error)
        return "" if named is None else f"PAGER={named} cannot be started: {why}"
    assert process.stdin is not None
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    interrupted = False
    taken = True
    try:
        taken = _fed(process.stdin, f"{text}\n".encode(encoding, errors="replace"))
    except KeyboardInterrupt:
        interrupted = True
    process.stdin.close()
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            interrupted = True  # a pager takes it for itself
    if interrupted or (code == 0 and taken):
        return None
    how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
    return f"the pager, {shlex.join(command)}, {how}" + ("" if taken else " and read nothing")


def _fed(pipe: IO[bytes], content: bytes) -> bool:
    """Write until all is written, or the pager has gone; whether it has read anything."""
    written = 0
    try:
        while written < len(content):
            written += pipe.write(content[written : written + (1 << 16)])
    except BrokenPipeError:  # the user has seen enough, or the pager shows nothing
        unread = fcntl.ioctl(pipe.fileno(), termios.FIONREAD, bytes(struct.calcsize("i")))
        return bool(written > struct.unpack("i", unread)[0])
    return True
