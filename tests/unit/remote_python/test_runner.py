"""The Python of a machine, asked: answers have a type, and what fails says whose fault it is."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dispatcher.remote_python.bundle import our_programs
from dispatcher.remote_python.errors import HostUnfit, NoPython, ProgramFailed
from dispatcher.remote_python.gpu_findings import AllGpus
from dispatcher.remote_python.probed import Probe, probe
from dispatcher.remote_python.runner import RemotePython, _Behind, ask_here
from dispatcher.ssh.running import Ran
from tests.support.remote_python import python_here


class Recorded:
    """A connection that keeps what it is given."""

    def __init__(self, ran: Ran) -> None:
        self.ran = ran
        self.argv: list[str] = []
        self.stdin: Any = b""

    def run(self, argv: Any, *, stdin: Any, limit_s: float, most_bytes: int) -> Ran:
        self.argv, self.stdin = list(argv), stdin
        return self.ran

    def started(self, argv: Any) -> Any: ...


def answering(out: bytes, code: int = 0, err: bytes = b"") -> tuple[Recorded, RemotePython]:
    runner = Recorded(Ran(code, out, err))
    return runner, RemotePython(runner, lambda *rest: ["python3", *rest], "far")


def test_the_last_line_is_the_answer_and_arguments_are_on_no_command_line() -> None:
    """Mutation: names of folders are shown to everybody on that machine, and have to fit there."""
    runner, python = answering(b'welcome\n["e/far"]\n')
    assert python.ask("leftovers", {"remove": ["e/far"]}, list[str], limit_s=1) == ["e/far"]
    code = our_programs().code
    assert runner.stdin == code + b'{"remove": ["e/far"]}\n'
    assert not [word for word in runner.argv if "e/far" in word]
    assert runner.argv[1] == "-I"


def test_a_file_goes_behind_code_and_arguments() -> None:
    runner, python = answering(b"{}\n")
    python.ask("unpack", {}, dict[str, str], data=io.BytesIO(b"tree"), limit_s=1)
    head = our_programs().code + b"{}\n"
    pieces = list(iter(lambda: runner.stdin.read(1000), b""))
    assert b"".join(pieces) == head + b"tree"
    assert {len(piece) for piece in pieces[:-1]} == {1000}
    assert _Behind(b"ab", io.BytesIO(b"c")).read() == b"abc"


@pytest.mark.parametrize("out", [b"", b"good bye\n", b"[1]\n", b'{"e": 1}\n', b'{"\xff": 1}\n'])
def test_what_is_no_answer_is_a_fault_of_that_machine(out: bytes) -> None:
    _, python = answering(out)
    with pytest.raises(ProgramFailed) as caught:
        python.ask("leftovers", {}, list[str], limit_s=1)
    assert caught.value.where == "far"


def old_python(folder: Path) -> str:
    """A Python of today that takes itself for one of 2018."""
    path = folder / "python3.6"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.version_info = (3, 6, 8)\n"
        "at = sys.argv.index('-c')\ntext, sys.argv = sys.argv[at + 1], sys.argv[at + 1 :]\n"
        "exec(text)\n"
    )
    path.chmod(0o755)
    return str(path)


def test_a_python_that_is_too_old_says_so(tmp_path: Path) -> None:
    """Mutation: it is shown a syntax error."""
    python = python_here(python=old_python(tmp_path))
    with pytest.raises(NoPython) as caught:
        probe(python, Probe(str(tmp_path)))
    assert f"is Python 3.6.8 ({sys.executable}), and trials need 3.9" in caught.value.message
    assert "'python' of the machine" in caught.value.hint


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match="KeyError: 'work_folder'"):
        python_here().ask("tidy", {}, dict[str, list[str]], limit_s=60)
    with pytest.raises(ProgramFailed, match="no verb: 'fly'"):
        python_here().ask("fly", {}, list[str], limit_s=60)
    bare = python_here(environment={"PATH": os.defpath, "PYTHONHOME": "/nowhere"})
    with pytest.raises(HostUnfit, match="does not run there"):
        probe(bare, Probe(str(tmp_path)))


def test_a_program_on_this_machine_has_a_bound() -> None:
    assert ask_here("gpus", {}, AllGpus, limit_s=60).gpus is not None
    with pytest.raises(TimeoutError):
        ask_here("gpus", {}, AllGpus, limit_s=0.0)
    with pytest.raises(ProgramFailed):
        ask_here("gpus", {}, list[str], limit_s=60)
