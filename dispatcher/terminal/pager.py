"""A long text in the user's pager."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess

from dispatcher.safe_text import SafeText


def shown_in_pager(text: SafeText) -> bool:
    """Show a text by the program that ``PAGER`` names, else by ``less``; false if there is no such
    program, or the environment wants none (``PAGER=``). Blocks until the user has left it."""
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
        if not command:
            return False
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, env={"LESS": "-R", **os.environ}, errors="replace",
            text=True,
        )  # fmt: skip
    except (OSError, ValueError):  # ValueError: a quote without an end
        return False
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):  # the user has seen enough
        process.stdin.write(f"{text}\n")
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    while True:
        try:
            process.wait()
        except KeyboardInterrupt:
            continue  # a pager takes it for itself
        return True
