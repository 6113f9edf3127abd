"""Bare machines become a share over SSH, by one command, and bare machines again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import sshd
from tests.system.nfs.first import TRIAL
from tests.system.nfs.rig import ROOT, Machine, Network, machines, why_not

_REASON = why_not() or sshd.why_not()

pytestmark = [
    pytest.mark.needs("nfs"),
    pytest.mark.slow,
    pytest.mark.skipif(bool(_REASON), reason=_REASON),
]

SHARE, POINT = "/srv/weights", "/mnt/weights"

#: All that the command may have changed: kind, mode, owner, target and content of each file,
#: what is mounted and exported, what runs. Packages keep their own state in /var/lib/nfs.
_LOOK = """
cd /; find etc srv mnt var/lib/bequeath -path etc/mtab -prune -o \
  -printf '%p %y %m %U %G %l\\n' 2>/dev/null | sort
find etc srv -type f -exec sha256sum {} + | sort -k2
grep nfs4 proc/mounts; cat proc/fs/nfsd/threads 2>/dev/null || echo 0
exportfs -s 2>/dev/null; ps -e -o comm= | grep -E '^(rpcbind|rpc\\.)' | sort
find tmp root run/user -xdev -newer root/ssh/config -type f 2>/dev/null | grep -v root/ssh/log
exit 0
"""

_SSHD = """\
HostKey /root/ssh/host_key
AuthorizedKeysFile /root/ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PidFile none
"""

#: A program of sshd's own is started for each login: it must find all below /root.
_START = """
set -e
mkdir -p /root/ssh /run/sshd
printf '%s' "$0" >/root/ssh/host_key; chmod 600 /root/ssh/host_key
printf '%s' "$1" >/root/ssh/authorized_keys
printf '%s' "$2" >/root/ssh/config
/usr/sbin/sshd -f /root/ssh/config -E /root/ssh/log
"""

#: In place of sudo, which is not on every machine: it asks for nothing, if it may not ask.
_SUDO = """\
set -e
install -m 4755 "$(command -v setpriv)" /usr/local/bin/as-root
cat >/usr/local/bin/sudo <<'end'
#!/bin/sh
[ "$1 $2" = "-n --" ] || { echo "sudo: a password is required" >&2; exit 1; }
shift 2
exec /usr/local/bin/as-root --reuid 0 --regid 0 --clear-groups "$@"
end
chmod 755 /usr/local/bin/sudo
"""


@dataclass
class Cluster:
    """Three machines that are logged in to; ``folder`` holds keys and inventories."""

    network: Network
    folder: Path
    known: dict[str, str] = field(default_factory=dict)

    def start(self, machine: Machine) -> None:
        """Start an sshd there that lets root and the trials' user in by our key."""
        key = sshd.make_key(self.folder / f"host_key_{machine.name}")
        public = (self.folder / "key.pub").read_text()
        began = machine.run("sh", "-c", _START, key.read_text(), public, _SSHD)
        assert began.code == 0, began
        self.known[machine.address] = " ".join(key.with_suffix(".pub").read_text().split()[:2])

    def write(self, name: str, **changes: Any) -> Path:
        """An inventory. JSON is YAML."""
        server, one, two = self.network
        lines = (f"{address} {key}\n" for address, key in self.known.items())
        (self.folder / f"known_{name}").write_text("".join(lines))
        document = {
            "share": {"folder": SHARE, "owner": TRIAL.name, "sharesItsFileSystem": True},
            "mount": {"point": POINT},
            "ssh": {"user": "root", "keyFile": "key", "knownHosts": f"known_{name}"},
            "server": {"host": server.address, "address": server.name},
            "clients": [{"host": c.address, "address": c.name} for c in (one, two)],
        }
        path = self.folder / f"{name}.yml"
        path.write_text(json.dumps(document | changes, indent=1))
        return path

    def __call__(self, *words: object) -> subprocess.CompletedProcess[str]:
        """``bequeath nfs cluster …``, typed on this machine, which is on their network."""
        program = (sys.executable, "-P", "-B", "-m", "dispatcher.cli", "nfs", "cluster")
        return subprocess.run(
            self.network.inside(*program, *map(str, words)),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=300,
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    sshd.make_key(folder / "key")
    with machines(folder, ["server", "one", "two"]) as network:
        found = Cluster(network, folder)
        for machine in network:
            found.start(machine)
        # Debian's script mounts it and leaves it there.
        server = network.machines[0]
        assert server.run("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd").code == 0
        yield found


def look(network: Network) -> list[list[str]]:
    """What undoing has to bring back, machine by machine."""
    looking = [machine.start("bash", "-c", _LOOK) for machine in network]
    return [one.wait(280).out.splitlines() for one in looking]


def states(answer: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return {host["host"]: host["state"] for host in json.loads(answer.stdout)["hosts"]}


def test_who_cannot_be_reached_is_told_apart_and_nothing_is_changed(cluster: Cluster) -> None:
    server, one, two = cluster.network
    untouched = look(cluster.network)
    stranger = sshd.make_key(cluster.folder / "stranger")
    cluster.known[one.address], true_key = (
        " ".join(stranger.with_suffix(".pub").read_text().split()[:2]),
        cluster.known[one.address],
    )
    wrong = cluster.write(
        "wrong",
        clients=[
            {"host": one.address, "address": "one"},
            {"host": two.address, "address": "two", "user": TRIAL.name},
            {"host": cluster.network.address, "address": "away"},
        ],
    )
    cluster.known[one.address] = true_key
    said = cluster(wrong, "--status", "--json")
    assert said.returncode == 4, said
    assert states(said) == {
        server.address: "done",
        one.address: "failed",
        two.address: "failed",
        cluster.network.address: "failed",
    }
    errors = {h["host"]: h["error"] for h in json.loads(said.stdout)["hosts"] if h["error"]}
    assert "HAS CHANGED" in errors[one.address]["message"]
    assert errors[two.address]["message"].startswith("is not root there, and ")
    assert "refused the connection" in errors[cluster.network.address]["message"]

    known = cluster.known.pop(server.address)
    said = cluster(cluster.write("unknown"))
    cluster.known[server.address] = known
    assert said.returncode == 4, said
    assert "bequeath hosts add" in said.stderr
    assert said.stdout.count("left out") == 2, "without the server nobody is touched"
    assert look(cluster.network) == untouched


def test_a_cluster_from_nothing_and_back(cluster: Cluster) -> None:
    server, one, two = cluster.network
    assert two.run("sh", "-c", _SUDO).code == 0
    untouched = look(cluster.network)
    users = {"one": "root", "two": TRIAL.name}
    clients = [{"host": c.address, "address": c.name, "user": users[c.name]} for c in (one, two)]
    inventory = cluster.write("inventory", clients=clients)

    plan = cluster(inventory, "--dry-run")
    assert plan.returncode == 0, plan
    assert "+/srv/weights one(rw,sync,root_squash" in plan.stdout
    assert server.run("test", "-e", SHARE).code == 1, "a plan is not carried out"

    done = cluster(inventory, "--json")
    assert done.returncode == 0, done
    assert set(states(done).values()) == {"done"}
    for writer, reader in ((one, two), (two, one)):
        file = f"{POINT}/of-{writer.name}"
        wrote = writer.as_user("sh", "-c", f"echo {writer.name} >{file}; sync {file}")
        assert wrote.code == 0, wrote
        assert reader.as_user("cat", file).out == f"{writer.name}\n"
    assert one.run("touch", f"{POINT}/roots").code != 0, "root of a client is nobody"

    again = cluster(inventory)
    assert again.returncode == 0, again
    assert again.stdout.endswith("nothing to change: everything is so already\n")

    keeper = one.start(*one.user_argv("sh", "-c", f"cd {POINT}; touch of-keeper; sleep 1000"))
    there = ("test", "-e", f"{SHARE}/of-keeper")
    assert one.await_(lambda: server.run(*there).code == 0, 280), keeper.said()
    used = cluster(inventory, "--undo")
    assert used.returncode == 4, used
    assert "is in use by" in used.stderr
    assert "left out" in used.stdout, "the server stays while a client uses it"
    assert one.as_user("cat", f"{POINT}/of-two").out == "two\n"
    keeper.signal("KILL")
    keeper.wait(280)

    assert server.run("sh", "-c", f"rm {SHARE}/of-*").code == 0
    undone = cluster(inventory, "--undo")
    assert undone.returncode == 0, undone
    assert look(cluster.network) == untouched
