"""A share between two machines, set up and taken back by the commands a person types."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.system.nfs.rig import SUBNET, Machine, Network, machines, why_not

pytestmark = [
    pytest.mark.needs("nfs"),
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

#: A folder with a blank: one share it must stay.
SHARE, POINT = "/srv/our weights", "/mnt/the weights"

#: Everything that can be configured: kind, mode, owner, target and content of each file.
_LOOK = """
cd /; find etc srv mnt var/lib/bequeath run/bequeath-nfs.lock -path etc/mtab -prune -o \
  -printf '%p %y %m %U %G %l\\n' 2>/dev/null | grep -v bequeath-nfs.lock | sort
find etc srv -type f -exec sha256sum {} + | sort -k2
grep -c nfs4 proc/mounts; cat proc/fs/nfsd/threads 2>/dev/null || echo 0
exportfs -s 2>/dev/null; ps -e -o comm= | grep -E '^(rpcbind|rpc.mountd)' | sort
exit 0
"""


@pytest.fixture
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with machines(tmp_path_factory.mktemp("rig"), ["server", "client"]) as found:
        yield found


def look(machine: Machine) -> list[str]:
    """What undoing has to bring back."""
    return machine.run("bash", "-c", _LOOK).out.splitlines()


def as_user(machine: Machine, program: str) -> tuple[int, str]:
    """By a user without privileges, whom server and client know by the same number."""
    user = ("setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups")
    answer = machine.run(*user, "sh", "-c", program, limit_s=20)
    return answer.code, answer.out + answer.err


def test_a_share_from_nothing_and_back(rig: Network) -> None:
    server, client = rig
    server.run("modprobe", "nfsd")
    server.run("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd")  # Debian's script does, for good
    untouched = look(server), look(client)

    refused = client.nfs("client", f"server:{SHARE}", POINT, "--last", "fstab")
    assert refused.code == 4, refused
    assert "nothing answers at server port 2049" in refused.err
    assert look(client) == untouched[1], "what failed left nothing behind"

    planned = server.nfs("server", SHARE, f"{SUBNET}.0/24", "--owner", "1234", "--dry-run")
    assert planned.code == 0, planned
    assert r"+/srv/our\040weights 10.79.0.0/24(rw,sync,root_squash" in planned.out
    assert look(server) == untouched[0], "a plan is not carried out"

    done = server.nfs("server", SHARE, f"{SUBNET}.0/24", "--owner", "1234", "--json")
    assert done.code == 0, done
    assert json.loads(done.out)["changed"]
    assert server.run("cat", "/proc/fs/nfsd/versions").out.startswith("-3 "), "NFSv3 is off"
    again = server.nfs("server", SHARE, f"{SUBNET}.0/24", "--owner", "1234", "--json")
    assert {step["state"] for step in json.loads(again.out)["steps"]} == {"already"}

    mounted = client.nfs("client", f"server:{SHARE}", POINT)
    assert mounted.code == 0, mounted
    assert "hard: while the server is away" in mounted.err
    again = client.nfs("client", f"server:{SHARE}", POINT)
    assert again.out.endswith("nothing to change: everything is so already\n"), again

    assert as_user(client, f"echo mine >'{POINT}/file'") == (0, "")
    assert server.run("stat", "-c", "%u %g", f"{SHARE}/file").out == "1234 1234\n"
    assert client.run("touch", f"{POINT}/roots").code != 0, "root of a client is nobody"
    shown = json.loads(server.nfs("status", "--json").out)["shown"]
    assert shown["shares"][0]["exported"]
    assert "client" in shown["server"]["clients"][0]

    used = server.nfs("undo")
    assert used.code == 4, used
    assert "clients use this server" in used.err
    keeper = client.run(
        *("setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", "sh", "-c"),
        f"cd '{POINT}' && {{ setsid sleep 100 >/dev/null 2>&1 & echo $!; }}",
    )
    used = client.nfs("undo")
    assert used.code == 4, used
    assert "(sleep)" in used.err
    client.run("kill", keeper.out.strip())
    client.run("sh", "-c", f"while test -d /proc/{keeper.out.strip()}; do :; done")

    undone = client.nfs("undo")
    assert undone.code == 0, undone
    assert look(client) == untouched[1]
    kept = server.nfs("undo")
    assert kept.code == 0, kept
    assert "is not empty: it stays" in kept.out, "nobody's weights are removed"
    server.run("rm", f"{SHARE}/file")
    server.run("rmdir", SHARE)
    assert look(server) == untouched[0]
