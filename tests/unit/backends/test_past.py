"""What experiments have left on a machine, as it says itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.backends.ssh.past import Left, remove, what_is_left
from dispatcher.errors import PassingBackendError


def machine() -> Any:
    return SimpleNamespace(name="far", work_folder="~/w", command=lambda *words: list(words))


def connection(out: bytes) -> Any:
    ran = SimpleNamespace(ok=True, out=out, said=lambda: "")
    return SimpleNamespace(run=lambda argv, **more: ran)


def test_the_last_line_counts() -> None:
    said = b'welcome\n{"e/far": {"bytes": 3, "age_s": 1.5, "used": false, "told": true}}\n'
    assert what_is_left(connection(said), machine()) == {"e/far": Left(3, 1.5, False, True)}
    assert remove(connection(b'["e/far"]'), machine(), ["e/far"]) == ["e/far"]


@pytest.mark.parametrize("said", [b"good bye", b'{"e": 1}', b'{"\xff": 1}', b"[1]"])
def test_what_is_no_answer_is_a_fault_of_that_machine(said: bytes) -> None:
    """Mutation: it ends the command with a traceback, and no other machine is tidied."""
    with pytest.raises(PassingBackendError, match="answers what it should not"):
        what_is_left(connection(said), machine())
