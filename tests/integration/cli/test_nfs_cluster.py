"""``bequeath nfs cluster`` over real sshds. These hosts have no NFS: nothing is changed on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import sshd
from tests.support.processes import wait_until
from tests.support.ssh_hosts import UID, USER, SshHosts, ssh_hosts, why_not

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

#: A Python that has begun, and takes its time.
_SLOW = "#!/bin/sh\ntouch /scratch/begun\nexec sleep 1000\n"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    with ssh_hosts(tmp_path_factory.mktemp("hosts"), 4) as found:
        yield found


class Command:
    """The command, typed where the hosts can be reached, by somebody with an empty home."""

    def __init__(self, hosts: SshHosts, folder: Path) -> None:
        self.hosts = hosts
        self.folder = folder

    def inventory(
        self, *clients: dict[str, Any] | str, share: dict[str, str] | None = None, **ssh: str
    ) -> Path:
        """h1 is the server."""
        found: list[Any] = [
            {"host": self.hosts[c].address, "address": c} if isinstance(c, str) else c
            for c in clients
        ]
        document = {
            "share": share or {"folder": "/srv/w", "owner": "root", "sharesItsFileSystem": "yes"},
            "mount": {"point": "/mnt/w"},
            "ssh": {
                "user": "root",
                "keyFile": str(self.hosts.key),
                "knownHosts": str(self.hosts.known_hosts),
                **ssh,
            },
            "server": {"host": self.hosts["h1"].address, "address": "h1"},
            "clients": found,
        }
        path = self.folder / "inventory.yml"
        path.write_text(json.dumps(document, indent=1))
        return path

    def start(self, *words: object) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "dispatcher.cli", "nfs", "cluster", *map(str, words)]
        return self.hosts.inside(
            program,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, *words: object) -> tuple[int, dict[str, Any], str]:
        process = self.start(*words, "--json")
        out, err = process.communicate(timeout=240)
        return process.returncode, json.loads(out) if out else {}, err.decode()


@pytest.fixture
def command(hosts: SshHosts, tmp_path: Path) -> Command:
    return Command(hosts, tmp_path)


def of(document: dict[str, Any], hosts: SshHosts, name: str) -> dict[str, Any]:
    address = hosts[name].address
    (found,) = [h for h in document["hosts"] if h["host"] == address]
    assert isinstance(found, dict)
    return found


def files(hosts: SshHosts) -> list[str]:
    """All that lies on the hosts, but for what sshd itself writes."""
    paths = [str(path) for host in hosts for path in host.disk.rglob("*")]
    return sorted(path for path in paths if not path.endswith("sshd.log"))


def test_hosts_with_nothing_but_python_answer_and_keep_nothing(
    command: Command, hosts: SshHosts
) -> None:
    before = files(hosts)
    code, document, err = command(command.inventory("h2", "h3"), "--status")
    assert code == 0, err
    assert [h["state"] for h in document["hosts"]] == ["done"] * 3
    assert of(document, hosts, "h2")["report"]["shown"] == {"shares": [], "mounts": []}
    assert files(hosts) == before, "the code leaves no file"


def test_each_host_says_what_is_wrong_with_it(command: Command, hosts: SshHosts) -> None:
    before = files(hosts)
    inventory = command.inventory(
        {"host": hosts["h2"].address, "user": USER},
        {"host": hosts["h3"].address, "python": "/opt/none/python3"},
        {"host": hosts["h4"].address, "keyFile": str(sshd.make_key(command.folder / "stranger"))},
    )
    code, document, err = command(inventory, "--status")
    assert code == 4, err
    said = {n: of(document, hosts, n) for n in ("h1", "h2", "h3", "h4")}
    assert said["h1"]["state"] == "done"
    assert said["h2"]["error"]["message"].startswith("is not root there, and ")
    assert "NOPASSWD" in said["h2"]["error"]["hint"]
    assert said["h3"]["error"]["message"] == "has no /opt/none/python3"
    assert "does not let root in" in said["h4"]["error"]["message"]

    code, document, _ = command(inventory)
    assert code == 4
    assert of(document, hosts, "h1")["state"] == "failed", "these hosts can serve no NFS"
    assert files(hosts) == before, "nothing is half done"


def test_hosts_that_are_not_known_are_not_spoken_to(command: Command, hosts: SshHosts) -> None:
    known = command.folder / "known"
    (line,) = [
        line
        for line in hosts.known_hosts.read_text().splitlines()
        if line.startswith(f"{hosts['h1'].address} ")
    ]
    other = hosts.known_hosts.read_text().splitlines()[-1].partition(" ")[2]
    known.write_text(f"{line}\n{hosts['h2'].address} {other}\n")
    code, document, _ = command(command.inventory("h2", "h3", knownHosts=str(known)), "--status")
    assert code == 4
    changed, unknown = (of(document, hosts, name)["error"] for name in ("h2", "h3"))
    assert "HAS CHANGED" in changed["message"]
    assert "bequeath hosts add" in unknown["hint"] + unknown["message"]
    assert of(document, hosts, "h1")["state"] == "done"


def test_the_share_is_measured_as_its_owner(command: Command, hosts: SshHosts) -> None:
    place = hosts["h2"].disk / "scratch" / "w"
    place.mkdir()
    os.chown(place, UID, UID)
    inventory = command.inventory(
        {"host": hosts["h2"].address, "point": "/scratch/w"},
        share={"folder": "/srv/w", "owner": USER, "sharesItsFileSystem": "yes"},
    )
    _, document, err = command(inventory, "--verify", "--quick")
    assert document["unasked"] == [], err
    (machine,) = document["facts"]["machines"]
    assert (machine["begun"]["uid"], machine["begun"]["gid"]) == (UID, UID)
    assert os.listdir(place) == [], "nothing is left there"


def test_ctrl_c_twice_leaves_a_host_that_hangs(command: Command, hosts: SshHosts) -> None:
    slow = hosts["h2"].disk / "scratch" / "slow"
    slow.write_text(_SLOW)
    slow.chmod(0o755)
    begun = slow.with_name("begun")
    inventory = command.inventory({"host": hosts["h2"].address, "python": "/scratch/slow"})
    process = command.start(inventory)
    try:
        wait_until(begun.exists, "the host has begun")
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert any(b"awaiting the hosts that are under way" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)  # two at once would be one
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
        slow.unlink()
    assert process.returncode == 130, err
    assert b"left out" in out
