"""``bequeath nfs verify --from HOST`` over a real sshd: code and questions go in, nothing stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import sshd
from tests.support.processes import wait_until

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(bool(sshd.why_not()), reason=sshd.why_not())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Sshd]:
    with sshd.running(tmp_path_factory.mktemp("sshd") / "server") as made:
        yield made


@pytest.fixture
def home(tmp_path: Path, server: sshd.Sshd) -> Path:
    """A user's, who calls the server ``far`` and ``farther``; nobody answers at ``gone``."""
    (tmp_path / ".ssh").mkdir(mode=0o700)
    (tmp_path / ".ssh/config").write_text(
        f"Host far farther\n HostName 127.0.0.1\n Port {server.port}\n"
        f"Host gone\n HostName 127.0.0.1\n Port {sshd.free_port()}\n"
        f"Host *\n IdentityFile {server.folder}/client_key\n"
        f" UserKnownHostsFile {server.folder}/known_hosts\n"
    )
    (tmp_path / "share").mkdir()
    return tmp_path


def start(home: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dispatcher.cli", "nfs", "verify", *words],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_machines_are_asked_over_ssh_with_nothing_installed(home: Path) -> None:
    hosts = ("--from", "far", "--from", f"farther:{home}/share")
    words = (str(home / "share"), *hosts, "--size", "1M", "--json", "--python", sys.executable)
    with start(home, *words) as process:
        out, err = process.communicate(timeout=240)
    assert process.returncode == 0, (out, err)
    document = json.loads(out)
    machines = document["facts"]["machines"]
    assert [m["name"] for m in machines] == ["here", "far", "farther"]
    for machine in machines:
        others = {m["name"] for m in machines} - {machine["name"]}
        assert {key.partition("/")[0] for key in machine["seen"]["delays_s"]} == others
        assert all(machine["churned"]["reads"][other] > 0 for other in others)
    locks = [lock["tried"]["refused"] for lock in document["facts"]["locks"]]
    assert locks == [True, True, True]
    assert os.listdir(home / "share") == []


@pytest.mark.parametrize(
    "host, code, text",
    [("gone", 4, "gone"), ("far:/nowhere", 1, "/nowhere is not there")],
)
def test_a_machine_that_cannot_be_asked(home: Path, host: str, code: int, text: str) -> None:
    words = (str(home / "share"), "--from", host, "--quick", "--python", sys.executable)
    with start(home, *words) as process:
        out, err = process.communicate(timeout=240)
    assert (process.returncode, text in out + err) == (code, True), (out, err)
    assert os.listdir(home / "share") == []


@pytest.mark.parametrize("how, code", [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_who_is_killed_leaves_nothing_behind(home: Path, how: signal.Signals, code: int) -> None:
    share = home / "share"
    with start(home, str(share), "--size", "256M") as process:
        wait_until(lambda: list(share.glob(".bequeath-verify-*/m0/big")), "it is under way")
        process.send_signal(how)
        process.communicate(timeout=240)
    assert process.returncode == code
    wait_until(lambda: not os.listdir(share), "all is removed")
