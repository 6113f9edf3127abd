"""The Python of another machine, asked by our programs: a verb and arguments go in, a typed answer
comes back."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from dispatcher.remote_python.bundle import OLDEST, TOO_OLD, our_programs
from dispatcher.remote_python.errors import NoPython, ProgramFailed
from dispatcher.ssh.running import Ran, Readable
from dispatcher.ssh.started import Started
from trial_runtime.trial_wire import UNREADABLE, brief

OWN_PYTHON = "'python' of the machine names another one"

#: Verbs that see the modules that trials see: PYTHONPATH and the user's own site count.
SEE_MODULES = ("gpus", "probe")

#: An answer of more bytes is none that our programs give.
MOST_ANSWER_BYTES = 16 << 20

_MOST_TEXT = 300

T = TypeVar("T")


class Runner(Protocol):
    """Runs commands on a machine, as an :class:`~dispatcher.ssh.SshConnection` does."""

    def run(
        self, argv: Sequence[str], *, stdin: bytes | Readable, limit_s: float, most_bytes: int
    ) -> Ran:
        """Run a command and wait for its end.

        Args:
            argv: the program and its arguments.
            stdin: its input; a file is read to its end.
            limit_s: seconds for all.
            most_bytes: bytes that are kept of each output.

        Raises:
            BackendError: it cannot be run, or takes too long.
        """
        ...

    def started(self, argv: Sequence[str]) -> AbstractContextManager[Started]:
        """A command that one talks to; leaving the context ends it."""
        ...


class _TooOld(msgspec.Struct, frozen=True):
    too_old: tuple[int, int, int]
    executable: str


@dataclass(frozen=True)
class RemotePython:
    """The Python of a machine. Methods block, and raise ``BackendError``.

    Attributes:
        runner: reaches the machine.
        command: the command line that calls its Python with these arguments.
        name: of the machine, for people.
        python: how its Python is called, for people.
    """

    runner: Runner
    command: Callable[..., list[str]]
    name: str
    python: str = "python3"

    def ask(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        answer: type[T],
        *,
        data: bytes | Readable = b"",
        limit_s: float,
    ) -> T:
        """Run a program there; returns its answer.

        Args:
            verb: see :mod:`dispatcher.remote_python.on_host`.
            arguments: as JSON knows them.
            answer: the type of the answer.
            data: what the program reads; a file is read to its end.
            limit_s: seconds for all.

        Raises:
            NoPython: there is none by that name, or it is too old.
            ProgramFailed: it failed, or its answer is none.
            BackendError: it could not be run, or took longer.
        """
        return self.ask_and_hear(verb, arguments, answer, data=data, limit_s=limit_s)[0]

    def ask_and_hear(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        answer: type[T],
        *,
        data: bytes | Readable = b"",
        limit_s: float,
    ) -> tuple[T, str]:
        """Ask as :meth:`ask` does; returns what came by stderr, too, which is the prolog's.

        Args:
            verb: see :meth:`ask`.
            arguments: see there.
            answer: see there.
            data: see there.
            limit_s: see there.

        Raises:
            DispatcherError: what :meth:`ask` raises.
        """
        head = our_programs().code + json.dumps(arguments).encode() + b"\n"
        stdin = head + data if isinstance(data, bytes) else _Behind(head, data)
        ran = self.runner.run(
            self._argv(verb), stdin=stdin, limit_s=limit_s, most_bytes=MOST_ANSWER_BYTES
        )
        lines = ran.out.splitlines()
        if not ran.ok or not lines:
            raise self._failure(ran)
        try:
            value = msgspec.json.decode(lines[-1], type=answer)
        except UNREADABLE as error:
            text = f"{self.python!r} answers what it should not: {brief(error)}"
            raise ProgramFailed(text, where=self.name) from error
        return value, ran.err.strip().decode(errors="replace")[-_MOST_TEXT:]

    @contextlib.contextmanager
    def talk(self, verb: str) -> Iterator[Started]:
        """A program that is talked to; leaving the context ends it."""
        with self.runner.started(self._argv(verb)) as program:
            program.send(our_programs().code)
            yield program

    def argv_for_terminal(self, verb: str) -> list[str]:
        """The command line of a program that has all of its stdin for itself."""
        return self.command(*our_programs().arguments_with_code(verb))

    def _argv(self, verb: str) -> list[str]:
        return self.command(*our_programs().arguments(verb, alone=verb not in SEE_MODULES))

    def _failure(self, ran: Ran) -> NoPython | ProgramFailed:
        lines = ran.out.splitlines()
        if ran.code == TOO_OLD and lines and (old := too_old(lines[-1], self.python, self.name)):
            return old
        complaint = ran.complaint()[-_MOST_TEXT:]
        # The end of the line: the prolog may lack a command, too.
        if ran.code == 127 and complaint.endswith(f"{self.python}: not found"):
            return NoPython(f"has no {self.python!r}", where=self.name, hint=OWN_PYTHON)
        text = f"{self.python!r} does not run there (exit code {ran.code}): {complaint}"
        return ProgramFailed(text, where=self.name)


def too_old(line: bytes, python: str, name: str) -> NoPython | None:
    """The error for a Python that answers that it is too old; None for any other answer. Pure.

    Args:
        line: of its answer.
        python: how it is called.
        name: of the machine, for people.
    """
    try:
        answer = msgspec.json.decode(line, type=_TooOld)
    except UNREADABLE:
        return None
    has, wanted = (".".join(map(str, version)) for version in (answer.too_old, OLDEST))
    text = f"{python!r} is Python {has} ({answer.executable}), and trials need {wanted}"
    return NoPython(text, where=name, hint=OWN_PYTHON)


class _Behind:
    """A file with something before it. Only read, and to its end."""

    def __init__(self, head: bytes, file: Readable) -> None:
        self._head = head
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        head = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(head) :]
        if size < 0:
            return head + self._file.read()
        return head + self._file.read(size - len(head)) if len(head) < size else head


def ask_here(verb: str, arguments: Mapping[str, Any], answer: type[T], *, limit_s: float) -> T:
    """Run a program in a Python of its own on this machine: a driver may hang in it.

    Args:
        verb: see :meth:`RemotePython.ask`.
        arguments: see there.
        answer: see there.
        limit_s: seconds for all.

    Raises:
        TimeoutError: it took longer, and was killed.
        ProgramFailed: it failed, or its answer is none.
    """
    programs = our_programs()
    stdin = programs.code + json.dumps(arguments).encode() + b"\n"
    argv = [sys.executable, *programs.arguments(verb, alone=verb not in SEE_MODULES)]
    try:
        ran = subprocess.run(argv, input=stdin, capture_output=True, timeout=limit_s, check=False)
        return msgspec.json.decode(ran.stdout.splitlines()[-1], type=answer)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"no answer in {limit_s:.0f} s") from error
    except (*UNREADABLE, IndexError) as error:
        raise ProgramFailed(f"the program {verb!r} failed", where="this machine") from error
