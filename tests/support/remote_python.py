"""The Python of another machine, on this one: programs of ours run as they do there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from dispatcher.remote_python.runner import RemotePython
from dispatcher.ssh.running import Ran, Readable


class Here:
    """A connection to this machine; ``umask`` is that of what it runs."""

    label = "here"

    def __init__(self, umask: int = 0o022, environment: Mapping[str, str] | None = None) -> None:
        self.umask = umask
        self.environment = environment

    def run(
        self, argv: Sequence[str], *, stdin: bytes | Readable, limit_s: float, most_bytes: int
    ) -> Ran:
        data = stdin if isinstance(stdin, bytes) else stdin.read()
        ran = subprocess.run(
            list(argv),
            input=data,
            capture_output=True,
            umask=self.umask,
            timeout=max(limit_s, 240.0),  # what takes long here says nothing of there
            env=None if self.environment is None else dict(self.environment),
        )
        return Ran(ran.returncode, ran.stdout[:most_bytes], ran.stderr[:most_bytes])

    def started(self, argv: Sequence[str]) -> Any:
        raise NotImplementedError


def python_here(
    *options: str,
    python: str = sys.executable,
    name: str = "far",
    environment: Mapping[str, str] | None = None,
) -> RemotePython:
    """This machine's Python, as one elsewhere.

    Args:
        options: of the Python.
        python: the one to call.
        name: of the machine.
        environment: all variables; None for ours.
    """
    return RemotePython(
        Here(environment=environment), lambda *rest: [python, *options, *rest], name, python
    )
