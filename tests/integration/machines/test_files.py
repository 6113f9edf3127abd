"""What trials on another machine leave: looked at while they run, and here when it is gone."""

from __future__ import annotations

import http.client
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import pytest

from dispatcher.cli.exit_codes import ExitCode
from tests.integration.machines.conftest import PATIENCE_S, POINT, Lab, environment
from tests.support.ssh_hosts import why_not
from tests.support.typing_at import Terminal

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


class Typist:
    """Types commands about trial 0 of an experiment, on the user's machine."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self._started: list[Popen[bytes]] = []

    def close(self) -> None:
        """Nothing may be left, whatever the test did."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=PATIENCE_S)

    def words(self, verb: str, *words: str) -> list[str]:
        said = ["-P", "-m", "dispatcher.cli", "trial", verb, "0", "-e", str(self.folder)]
        return [sys.executable, *said, *words]

    def start(self, verb: str, *words: str, **settings: Any) -> Popen[bytes]:
        settings = {"env": environment(), "stdout": PIPE, "stderr": PIPE, **settings}
        process = self.lab.hosts.inside(self.words(verb, *words), **settings)
        self._started.append(process)
        return process

    def __call__(self, verb: str, *words: str, stdin: bytes = b"", code: int = 0) -> str:
        process = self.start(verb, *words, stdin=PIPE)
        out, err = process.communicate(stdin, timeout=PATIENCE_S)
        self._started.remove(process)
        assert process.returncode == code, (out, err)
        return (out if code == 0 else err).decode()

    def json(self, verb: str, *words: str) -> Any:
        return json.loads(self(verb, *words, "--json"))


class Page:
    """The page as its user has it who reaches the hosts, asked at a socket in a file.

    Args:
        trial: types commands there.
        base: a folder for the socket and the page's state.
    """

    def __init__(self, trial: Typist, base: Path) -> None:
        self._socket = base / "s"
        self._trial = f"/api/v1/experiments/{trial.folder.name}/trials/0"
        words = ["-P", "-m", "dispatcher.cli", "web", "--socket", str(self._socket)]
        own = {"BEQUEATH_HOME": str(trial.folder.parent), "XDG_STATE_HOME": str(base / "state")}
        self._process = trial.lab.hosts.inside(
            [sys.executable, *words], env=environment() | own, stdin=DEVNULL, stdout=PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "it prints a link"
        self._token = (base / "state/bequeath/web/token").read_text().strip()

    @contextmanager
    def get(self, path: str) -> Iterator[http.client.HTTPResponse]:
        """An answer about trial 0, which must be there."""
        with closing(http.client.HTTPConnection("localhost", timeout=PATIENCE_S)) as line:
            line.sock = socket.socket(socket.AF_UNIX)
            line.sock.settimeout(PATIENCE_S)
            line.sock.connect(str(self._socket))
            line.request(
                "GET", self._trial + path, None, {"Authorization": f"Bearer {self._token}"}
            )
            with line.getresponse() as answer:
                assert answer.status == 200, answer.read()
                yield answer

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.communicate(timeout=PATIENCE_S)


def _wait_for(words: bytes, answer: http.client.HTTPResponse) -> None:
    """Read a stream up to these words."""
    while words not in (line := answer.readline()):
        assert line, "the stream has ended"


def test_what_a_trial_leaves_is_seen_while_it_runs_and_here_when_its_host_is_off(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: a shell gets the secret; names are taken as they come; nothing is fetched when
    an attempt ends; a fetched log is looked for on its machine; a page that reads its own disk."""
    monkeypatch.setenv("OF_THE_USER", "x\"y z'$")
    go = lab.share / lab.base.name / "go"
    folder = lab.create(
        {"platform": "ssh", "machineList": [lab.machine("h1", environment={"OF_MACHINE": "yes"})]},
        trialFunction="keeping_trial:main",
        trialEnvironment={"GO": f"{POINT}/{lab.base.name}/go", "SECRET": "env:OF_THE_USER"},
        maxTrialNumber=1,
        trialConcurrency=1,
        fetch="onEnd",
    )
    head = lab.lead(folder)
    lab.until(lambda: lab.counted_metrics(folder), "it has reported", folder)
    with closing(Typist(lab, folder)) as trial:
        _look_while_it_runs(trial, tmp_path / "to", go)
        lab.finish(folder, head)
        _look_when_it_is_gone(trial)


def _look_while_it_runs(trial: Typist, to: Path, go: Path) -> None:
    following = trial.start("log", "--follow")
    assert following.stdout is not None
    assert following.stdout.readline() == b"begun\n"

    listed = trial.json("files", "--links")
    files = {each["path"]: each for each in listed["files"]}
    assert listed["place"] == "h1"
    assert files["artefacts/model.bin"]["size"] == 3_000_000
    assert files["work/notes.txt"]["kind"] == "work"
    assert files["work/way_out"]["link"]
    assert any(path.startswith("checkpoints/") for path in files)
    assert "red␛[31m.txt" in trial("files")

    _see_through_a_shell(trial)
    told = trial.json("fetch", "work", "checkpoints", "--to", str(to))
    assert (to / "work/notes.txt").read_text() == "what it noted\n"
    assert not (to / "work/way_out").exists()
    assert len(told["fetched"]) > 2

    with closing(Page(trial, to.parent)) as page, page.get("/log/stdout?follow=1") as written:
        _wait_for(b"begun", written)
        with page.get("/files") as answer:
            assert json.load(answer)["place"] == "h1"
        with page.get("/files/artefacts/model.bin") as answer:
            assert answer.read() == b"m" * 3_000_000
        go.touch()
        _wait_for(b"done", written)
    assert following.communicate(timeout=PATIENCE_S)[0] == b"done\n"


def _look_when_it_is_gone(trial: Typist) -> None:
    lab = trial.lab
    there = trial.folder / "trials/0/1"
    assert (there / "artefacts/model.bin").read_bytes() == b"m" * 3_000_000
    assert not (there / "work").exists(), "only by policy, or on demand"

    assert "notes.txt" in trial("shell", "--", "ls")  # its folder is there still
    lab.hosts.crash("h1", tells=True)
    address = lab.hosts["h1"].address
    try:
        assert trial("log") == "begun\ndone\n"
        assert "model.bin" in trial("files")
        assert address in trial("shell", "--", "true", code=ExitCode.ENVIRONMENT)
        assert address in trial("fetch", "work", code=ExitCode.ENVIRONMENT)
    finally:
        lab.hosts.start("h1")


def _see_through_a_shell(trial: Typist) -> None:
    shown = trial("shell", "--", "sh", "-c", "cat; env; pwd; exit 0", stdin=b"from here\n")
    assert shown.startswith("from here\n")
    variables = dict(line.partition("=")[::2] for line in shown.splitlines() if "=" in line)
    assert variables["BEQUEATH_EXPERIMENT"] == trial.folder.name
    assert (variables["OF_MACHINE"], variables["SECRET"]) == ("yes", "x\"y z'$")
    assert "BEQUEATH_SESSION" not in variables
    assert shown.splitlines()[-1].endswith("/trials/0/1/work")
    assert trial("shell", "--", sys.executable, "-c", "import trial_runtime") == ""
    trial("shell", "--", "sh", "-c", "exit 7", code=7)

    words = trial.words("shell")
    at = Terminal(words, environment() | {"TERM": "xterm"}, trial.lab.hosts.inside)
    try:
        at.until("0.1 on h1")
        at.until("# ")
        at.type("echo sum=$((40 + 2)) $(cat notes.txt) $(tty | cut -c1-8)\r")
        at.until("sum=42 what it noted /dev/pts")
        at.until("# ")
        at.resize(132, 50)
        at.type("until [ \"$(stty size)\" = '50 132' ]; do sleep 0.1; done; echo it$((6 * 9))\r")
        at.until("it54")
        at.until("# ")
        # A shell that is about to start a command may miss a key; the command itself does not.
        at.type("sh -c 'echo wait$((1 + 1)); exec sleep 1000'\r")
        at.until("wait2")
        at.type("\x03")
        at.until("# ")
        at.type("exit $((3 + 2))\r")
        assert at.end() == 5
    finally:
        at.close()
