"""What experiments have left on a machine, as it says itself."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.remote_python.leftovers import Left, remove, what_is_left
from dispatcher.remote_python.runner import RemotePython
from dispatcher.ssh.running import Ran


class Says:
    """A connection on which each command says this."""

    def __init__(self, out: bytes) -> None:
        self.ran = Ran(0, out, b"")

    def run(self, *_: Any, **__: Any) -> Ran:
        return self.ran

    def started(self, *_: Any) -> Any: ...


def python(out: bytes) -> RemotePython:
    return RemotePython(Says(out), lambda *words: list(words), "far")


def test_the_last_line_counts() -> None:
    said = b'welcome\n{"e/far": {"bytes": 3, "age_s": 1.5, "used": false, "told": true}}\n'
    assert what_is_left(python(said), "~/w") == {"e/far": Left(3, 1.5, False, True)}
    assert remove(python(b'["e/far"]'), "~/w", ["e/far"]) == ["e/far"]


@pytest.mark.parametrize("said", [b"good bye", b'{"e": 1}', b'{"\xff": 1}', b"[1]"])
def test_what_is_no_answer_is_a_fault_of_that_machine(said: bytes) -> None:
    """Mutation: it ends the command with a traceback, and no other machine is tidied."""
    with pytest.raises(PassingBackendError, match="answers what it should not"):
        what_is_left(python(said), "~/w")
