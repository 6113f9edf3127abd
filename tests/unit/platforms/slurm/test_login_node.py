"""Slurm's commands on a login node: what arrives there, and what it is when nobody answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.findings import Severity
from dispatcher.platforms.slurm.commands import CommandLineHere
from dispatcher.platforms.slurm.inspection import inspect_cluster
from dispatcher.platforms.slurm.login_node import (
    AGAIN_AT_MOST_S,
    AGAIN_S,
    CommandLineThere,
    command_line_of,
)
from dispatcher.platforms.slurm.section import LoginNodeConfig, SlurmServiceConfig
from dispatcher.ssh import ConnectionLost, HostKeyChanged, HostUnreachable, LoginRefused, Ran


@dataclass
class Connection:
    """See :class:`dispatcher.ssh.SshConnection`: one that answers what a test wants."""

    answers: Mapping[str, Ran | BackendError] = field(default_factory=dict)
    user: str = "lea"
    alive: bool = True
    ran: list[tuple[list[str], bytes]] = field(default_factory=list)

    def is_alive(self) -> bool:
        return self.alive

    def run(self, argv: Sequence[str], *, stdin: bytes, limit_s: float, most_bytes: int) -> Ran:
        own = list(argv)[1:]
        while own[0] == "-u":
            own = own[2:]
        self.ran.append((own, stdin))
        answer = self.answers.get(own[0].rpartition("/")[2], Ran(0, b"out", b""))
        if isinstance(answer, BackendError):
            self.alive = not isinstance(answer, ConnectionLost)
            raise answer
        return answer

    def close(self) -> None:
        self.alive = False


class Node:
    """A login node.

    Attributes:
        logins: the connections that were made.
        refusals: errors of the next logins.
        now: the time.
    """

    def __init__(self, **answers: Ran | BackendError) -> None:
        self.answers = answers
        self.logins: list[Connection] = []
        self.tries = 0
        self.refusals: list[BackendError] = []
        self.now = 0.0

    def connect(self, _: LoginNodeConfig) -> Any:
        self.tries += 1
        if self.refusals:
            raise self.refusals.pop(0)
        self.logins.append(Connection(self.answers))
        return self.logins[-1]

    def shell(self, **keys: Any) -> CommandLineThere:
        login = LoginNodeConfig.model_validate({"host": "login1", **keys})
        return CommandLineThere(login, connect=self.connect, clock=lambda: self.now)


def test_one_login_for_all_commands() -> None:
    """Mutation: a login for each command, as of a shell script."""
    node = Node()
    shell = node.shell()
    assert shell.run(["sbatch", "--parsable"], stdin=b"#!/bin/sh\n") == (0, b"out", b"")
    assert shell.user == "lea", "not the number that we have here"
    shell.run(["squeue", "--name=a b;'$(c)\n"])
    (login,) = node.logins
    assert login.ran == [
        (["sbatch", "--parsable"], b"#!/bin/sh\n"),
        (["squeue", "--name=a b;'$(c)\n"], b""),
    ], "arguments are given on as they are: the connection quotes them"
    shell.close()
    assert not login.alive


def test_variables_of_the_login_do_not_change_what_is_printed() -> None:
    seen: list[list[str]] = []

    class Seeing(Connection):
        def run(self, argv: Sequence[str], **_: Any) -> Ran:
            seen.append(list(argv))
            return Ran(0, b"", b"")

    shell = CommandLineThere(
        LoginNodeConfig.model_validate({"host": "h"}),
        connect=lambda _: Seeing(),  # type: ignore[arg-type, return-value]
    )
    shell.run(["squeue"])
    (argv,) = seen
    assert argv[0] == "env"
    assert argv[-1] == "squeue"
    assert {"SQUEUE_FORMAT", "SQUEUE_STATES", "SBATCH_EXPORT", "SBATCH_ARRAY_INX"} <= set(argv)
    assert "SBATCH_ACCOUNT" not in argv, "usual options of the user's own jobs count"


def test_commands_outside_of_path() -> None:
    node = Node(sbatch=Ran(127, b"", b"env: 'sbatch': No such file or directory\n"))
    with pytest.raises(PermanentBackendError, match="No such file") as error:
        node.shell().run(["sbatch"])
    assert "commandFolder" in error.value.hint
    assert error.value.where == "login1"
    node.shell(commandFolder="/opt/slurm/bin").run(["squeue"])
    assert node.logins[-1].ran[0][0] == ["/opt/slurm/bin/squeue"]


@pytest.mark.parametrize(
    "answer",
    [
        Ran(0, b"x", b"", cut=True),
        Ran(-1, b"", b""),
        ConnectionLost("gone", where="login1"),
    ],
)
def test_answers_of_which_nobody_knows_the_rest(answer: Ran | BackendError) -> None:
    """An order may have been taken: the list is asked before it is given again."""
    node = Node(sbatch=answer)
    with pytest.raises(PassingBackendError):
        node.shell().run(["sbatch"])


def test_a_node_that_is_away_for_minutes() -> None:
    """It is tried less and less often, and no look waits for it. Mutations: a login each second;
    the connection that has ended is asked for ever."""
    node = Node(squeue=ConnectionLost("gone", where="login1"))
    shell = node.shell()
    with pytest.raises(ConnectionLost):
        shell.run(["squeue"])
    node.refusals = [HostUnreachable("no answer", where="login1") for _ in range(100)]
    node.answers = {}
    for _ in range(600):
        node.now += 1.0
        with pytest.raises(HostUnreachable, match="no answer"):
            shell.run(["squeue"])
    assert 600 / AGAIN_AT_MOST_S <= node.tries - 1 <= 600 / AGAIN_AT_MOST_S + 6
    node.refusals = []
    node.now += AGAIN_AT_MOST_S
    assert shell.run(["squeue"]).code == 0
    node.logins[-1].alive = False
    node.refusals = [HostUnreachable("no answer", where="login1")]
    with pytest.raises(HostUnreachable):
        shell.run(["squeue"])
    node.now += AGAIN_S
    assert shell.run(["squeue"]).code == 0, "the pause begins anew"


@pytest.mark.parametrize("kind", [LoginRefused, HostKeyChanged])
def test_who_was_let_in_before_waits_for_whoever_mends_it(kind: type[BackendError]) -> None:
    """At first it is a fault that no time mends."""
    node = Node()
    node.refusals = [kind("not you", hint="mend it", where="login1")]
    with pytest.raises(kind):
        node.shell().run(["squeue"])
    shell = node.shell()
    shell.run(["squeue"])
    node.logins[-1].alive = False
    node.refusals = [kind("not you", hint="mend it", where="login1")]
    with pytest.raises(PassingBackendError, match="it has let us in before") as error:
        shell.run(["squeue"])
    assert (error.value.hint, error.value.where) == ("mend it", "login1")


def section(folder: Path, **keys: Any) -> SlurmServiceConfig:
    given = {"platform": "slurm", "sharedFolder": str(folder), "login": {"host": "h"}, **keys}
    return SlurmServiceConfig.model_validate(given)


def test_the_section_says_where_commands_are_run(tmp_path: Path) -> None:
    assert isinstance(command_line_of(section(tmp_path)), CommandLineThere)
    assert isinstance(command_line_of(section(tmp_path, login=None)), CommandLineHere)


def test_a_login_node_is_looked_over(tmp_path: Path) -> None:
    """Paths that must be the same there. Nothing is submitted."""
    gone = Ran(1, b"", b"")
    node = Node(test=gone)
    found = list(inspect_cluster(section(tmp_path, python="/opt/python"), node.shell()))
    problems = [each.text for each in found if each.severity is Severity.PROBLEM]
    assert problems == [
        f"'sharedFolder' is {tmp_path}, which the login node does not have",
        "'python' is /opt/python, which the login node does not have",
    ]
    found = list(inspect_cluster(section(tmp_path), Node().shell()))
    assert [each.topic for each in found if each.severity is Severity.NOTE] == ["cluster", "python"]


@pytest.mark.parametrize(
    "service, words",
    [
        ({"login": "lea@login1:2222"}, "is missing: with a login node"),
        ({"login": "lea@login1:2222", "sharedFolder": "{}"}, ""),
        ({"login": {"host": "h", "keyFile": "{}/key"}, "sharedFolder": "{}"}, "does not exist"),
        ({"login": {"host": "h", "password": "open"}, "sharedFolder": "{}"}, "must be a reference"),
        (
            {"login": {"host": "h", "password": "env:NOT_THERE"}, "sharedFolder": "{}"},
            "'NOT_THERE', which is not set",
        ),
        (
            {"login": {"host": "h", "jump": "a@b", "commandFolder": "bin"}, "sharedFolder": "{}"},
            "must be a path from the root",
        ),
        ({"login": {"hots": "h"}, "sharedFolder": "{}"}, "did you mean"),
    ],
)
def test_what_a_file_gets_to_hear(service: dict[str, Any], words: str, tmp_path: Path) -> None:
    given = json.loads(json.dumps(service).replace("{}", str(tmp_path)))
    values = {
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(tmp_path),
        "trialConcurrency": 1,
        "weightsRoot": str(tmp_path / "weights"),
        "trainingService": {"platform": "slurm", "headAddress": "127.0.0.1", **given},
    }
    if not words:
        (service_,) = build_experiment(values).services
        assert isinstance(service_, SlurmServiceConfig)
        assert service_.login is not None
        assert (service_.login.user, service_.login.port) == ("lea", 2222)
        return
    with pytest.raises(ExperimentFileErrors, match=words):
        build_experiment(values)
