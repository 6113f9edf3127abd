"""A machine whose Python does not run: what is said is what that machine said."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.backends.ssh.machine import Machine
from dispatcher.backends.ssh.probing import HostUnfit, probe
from dispatcher.ssh import SshTarget
from dispatcher.ssh.running import Ran


class Says:
    """A connection on which each command ends so."""

    def __init__(self, code: int, err: str) -> None:
        self.ran = Ran(code, b"", err.encode())

    def run(self, *words: Any, **settings: Any) -> Ran:
        return self.ran


@pytest.mark.parametrize(
    "err, text",
    [
        ("/bin/sh: 1: exec: /opt/py: not found", "has no '/opt/py'"),
        (
            "/opt/py: error while loading shared libraries: libpython3.12.so: no such file",
            "'/opt/py' does not run there (exit code 127): /opt/py: error while loading shared "
            "libraries: libpython3.12.so: no such file",
        ),
        (
            "bash: line 1: module: command not found",
            "'/opt/py' does not run there (exit code 127): bash: line 1: module: command not found",
        ),
    ],
)
def test_only_one_that_is_not_there_is_said_not_to_be_there(err: str, text: str) -> None:
    """Mutation: whatever ends with 127 is taken for a Python that is not there."""
    machine = Machine("gpu1", lambda: SshTarget("gpu1"), python="/opt/py")
    connection: Any = Says(127, err)
    with pytest.raises(HostUnfit) as caught:
        probe(connection, machine, ())
    assert (caught.value.message, caught.value.where) == (text, "gpu1")
    assert "'python' of the machine" in caught.value.hint
