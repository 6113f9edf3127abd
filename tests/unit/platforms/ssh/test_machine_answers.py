"""A machine may answer anything: that is a fault of that machine, said so, and no traceback."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.errors import BackendError, PassingBackendError
from dispatcher.findings import Severity
from dispatcher.platforms.agents.attended import AttendedVisit, Called, Told
from dispatcher.platforms.files import Whereabouts
from dispatcher.platforms.logins import targets
from dispatcher.platforms.ssh.files import FileServer, SshFiles
from dispatcher.platforms.ssh.hosts import SshHost
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.remote_python.errors import HostUnfit, TransferFailed
from dispatcher.remote_python.findings import HostNeeds
from dispatcher.remote_python.leftovers import what_is_left
from dispatcher.remote_python.probed import Probe, probe
from dispatcher.ssh import SshTarget
from dispatcher.ssh.running import Ran
from tests.support.workers import agent_config
from trial_runtime.agent.config import AgentConfig

ODD = [
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"pid": ' + b"[" * 100_000,
    b'{"pid": "\xff"}',
    b'"\xff',
    b"[]",
    b"null",
    b'{"pid": {}, "python": 1, "bytes": true}',
]

MACHINE = Machine("far", lambda: SshTarget("far"))


def answering(out: bytes) -> Any:
    return SimpleNamespace(run=lambda *_, **__: Ran(0, out, b""), label="far", user="u")


class Odd(AttendedVisit):
    """A place whose program says this."""

    unfit = HostUnfit
    out = b""

    def call(self, arguments: Any, stdin: bytes, limit_s: float) -> Called:
        return Called(0, self.out)

    def told(self, config: AgentConfig) -> Told:
        return Told(config, {})

    def folder(self, config: AgentConfig) -> str:
        return "/nowhere"


@pytest.fixture
def config(tmp_path: Path) -> AgentConfig:
    return agent_config(tmp_path, "far")


@pytest.mark.parametrize("out", ODD)
def test_odd_answers_are_faults_of_their_machine(out: bytes, config: AgentConfig) -> None:
    """Mutation: ``except ValueError``; a ``RecursionError`` is none, and ends the thread."""
    python = MACHINE.python_on(answering(out))
    with pytest.raises(HostUnfit, match="answers what it should not"):
        probe(python, Probe("~/w"))
    with pytest.raises(PassingBackendError, match="answers what it should not"):
        what_is_left(python, "~/w")
    visit = Odd("far")
    visit.out = out
    with pytest.raises(BackendError, match="keeper"):
        visit.look(config)


@pytest.mark.parametrize("out", ODD)
def test_odd_lists_of_files_are_faults_of_their_machine(out: bytes) -> None:
    server = FileServer(MACHINE)
    said = [b'{"bytes": %d}' % len(out), out]
    program = SimpleNamespace(
        send=lambda _: None, line=lambda _: said[0], exactly=lambda *_: said[1]
    )
    server._answering = lambda: program  # type: ignore[method-assign, assignment, return-value]
    files = SshFiles(server, Whereabouts("e", 0, 1, "/nowhere"))
    with pytest.raises(TransferFailed, match="what are no files"):
        files.list(most=10)
    said[0] = out
    with pytest.raises(TransferFailed, match=r"answers what it should not|more than was asked"):
        files.list(most=10)


@pytest.mark.parametrize("out", [b"{}", b'{"python": 1}', b'{"python": {}, "time": "x"}', *ODD])
def test_odd_answers_are_said_when_a_machine_is_looked_over(
    out: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a ``KeyError`` is a fault of bequeath, and no other machine is looked over."""

    class Open:
        user = "u"
        run = staticmethod(answering(out).run)

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(targets, "connect", lambda *_, **__: Open())
    login, python = SshHost(MACHINE, "far").check(HostNeeds())
    assert (login.topic, login.severity) == ("login", Severity.OK)
    assert (python.topic, python.severity) == ("python", Severity.PROBLEM)
    assert "answers what it should not" in python.text
