"""A command as one line that every login shell understands, with nothing pasted into a shell.

sshd hands a command to the user's login shell, which may be bash, fish or tcsh, and each has
rules of its own for quotes, backslashes and exclamation marks. So that shell gets a constant
text only; it starts ``/bin/sh``, which reads one line from stdin, and that line holds the
arguments of the command in quotes that POSIX defines. The rest, behind the line, is the stdin of
the command. Values of the environment are set by that line, too: they appear in no list of
processes.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dispatcher.errors import InternalError

#: All that the login shell sees, whatever is run.
LAUNCHER = "exec /bin/sh -c 'IFS= read -r bequeath_line; eval \"$bequeath_line\"'"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Launch:
    """The line for :data:`LAUNCHER`, newline included. ``mark`` begins the line of stderr that
    names the process that leads the command's group."""

    line: bytes
    mark: bytes


def launch(argv: Sequence[str], environment: Mapping[str, str]) -> Launch:
    """The launch of a command.

    Args:
        argv: the program and its arguments.
        environment: variables added to what the login gives.

    Raises:
        InternalError: there is no command, a name of a variable is none, or an argument holds a
            NUL byte.
    """
    if not argv:
        raise InternalError("no command to run")
    mark = f"bequeath-{secrets.token_hex(8)} "
    parts = [f"unset bequeath_line; echo '{mark}'$$ >&2"]
    texts = [*argv, *environment.values()]
    if any("\0" in text for text in texts):
        raise InternalError(f"a NUL byte in the command {argv[0]!r} or its environment")
    if any("\n" in text for text in texts):
        # The line ends at the first newline, so they travel as a variable.
        parts.append("bequeath_nl=$(printf '\\nx'); bequeath_nl=${bequeath_nl%x}")
    for name, value in environment.items():
        if not _NAME.fullmatch(name):
            raise InternalError(f"{name!r} is no name of an environment variable")
        parts.append(f"{name}={_quoted(value)}; export {name}")
    parts.append("exec " + " ".join(_quoted(each) for each in argv))
    return Launch(("; ".join(parts) + "\n").encode(errors="surrogateescape"), mark.encode())


def launch_kill(pid: int) -> Launch:
    """The launch of a command that ends a process group: a command in progress leads one."""
    return Launch(f"kill -s KILL -- -{pid}\n".encode(), b"")


def _quoted(text: str) -> str:
    return '"$bequeath_nl"'.join(shlex.quote(part) for part in text.split("\n"))
