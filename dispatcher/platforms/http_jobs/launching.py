"""The program of a job: how an agent begins in a container, and what is secret of that. Pure.

All that is secret is in one script: variables with their values, and the agent's configuration,
which holds keys. Jobs show their commands and variables to others, so the script comes by a secret
of the service, or lies in a shared folder for its owner alone. It removes itself before the agent
begins, so that a job that somebody starts again has none, and ends.
"""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence

#: How long a command may take to end after it was asked to, where it ends itself (seconds).
LEAVE_S = 30.0

#: Sends what follows into a log. A shell that cannot would end without a word.
_INTO_LOG = """\
log={}
if (: >>"$log") 2>/dev/null
then echo "bequeath: what follows is in $log"; exec >>"$log" 2>&1
else echo "bequeath: user $(id -u) cannot write to $log" >&2
fi"""

#: The name of the script below a folder of its own.
START = "start"


def start_script(
    command: Sequence[str],
    config: bytes,
    variables: Mapping[str, str],
    *,
    config_path: str = "",
    log: str = "",
    stays: bool = False,
    wall_s: float | None = None,
    grace_s: float = 0.0,
    title: str = "",
) -> bytes:
    """The script of a job. It becomes the agent, which so gets the signals that a service sends.

    Args:
        command: the agent's; the path of its configuration follows.
        config: of the agent.
        variables: of the agent.
        config_path: a file there that has the configuration already; empty: the script writes one
            beside itself.
        log: a file there for its output; empty: that is left to the service.
        stays: whether it stays: several nodes read one file.
        wall_s: when it ends itself (seconds); None: never.
        grace_s: how long its trials may take to end (seconds).
        title: what people are to know of it.
    """
    about = " ".join(title.split())
    lines = ["#!/bin/sh", f"# {about}", "umask 077", *([] if stays else ['rm -f "$0"'])]
    if log:
        lines.append(_INTO_LOG.format(shlex.quote(log)))
    path = shlex.quote(config_path)
    if not config_path:
        path = '"${0%/*}/config"'
        lines.append(f"printf %s {b64encode(config).decode()} | base64 -d >{path} || exit 1")
    lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    limit = [] if wall_s is None else ["timeout", "-k", f"{grace_s + LEAVE_S:.0f}"]
    limit += [] if wall_s is None else ["-s", "TERM", f"{wall_s:.0f}"]
    lines.append(f"exec {shlex.join([*limit, *command])} {path}")
    return "\n".join([*lines, ""]).encode(errors="surrogateescape")


def line_of_file(path: str) -> str:
    """The line of a job whose script is a file there."""
    return f"exec sh {shlex.quote(path)}"


def line_of_secret(place: str) -> str:
    """The line of a job whose script is a secret of the service, in base64.

    Args:
        place: the text that the service replaces by the secret. No list of processes has it:
            ``printf`` is a part of shells.
    """
    steps = (
        "umask 077",
        "d=$(mktemp -d)",
        f"printf %s '{place}' | base64 -d >\"$d/{START}\"",
        f'exec sh "$d/{START}"',
    )
    return " && ".join(steps)
