"""Three machines that never heard of NFS, a share between them, and back: each by the commands
a person types, with real packages from a repository on their disks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.system.nfs import bare
from tests.system.nfs.look import changed, look
from tests.system.nfs.rig import SUBNET, Answer, Machine, Network, machines, why_not

_REASON = why_not() or bare.why_not()

pytestmark = [
    pytest.mark.extended,
    pytest.mark.needs("nfs"),
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # on a machine that is busy
    pytest.mark.skipif(bool(_REASON), reason=_REASON),
]

#: A folder with a blank: one share it must stay.
SHARE, POINT = "/srv/our weights", "/mnt/the weights"

#: Packages are installed by it, on a machine that may be busy.
LONG_S = 900.0

#: Users that packages make stay, as Debian wants it; nothing else about accounts changes.
_ACCOUNTS = "cd /etc; grep -vhE '^(statd|_rpc):' passwd shadow group gshadow"
_ACCOUNT_FILES = tuple(
    f"etc/{name}{end}" for name in ("passwd", "shadow", "group", "gshadow") for end in ("", "-")
)

#: As another package manager does.
_HOLD_LOCK = """
import fcntl, signal
held = open("/var/lib/dpkg/lock-frontend", "r+")
fcntl.lockf(held, fcntl.LOCK_EX)
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder = tmp_path_factory.mktemp("rig")
    with machines(folder, ["server", "one", "two"], bare.bare_disk(folder)) as network:
        yield network


def state(machine: Machine) -> list[str]:
    """What undoing has to bring back."""
    lines = [line for line in look(machine) if not line.endswith(_ACCOUNT_FILES)]
    return lines + machine.run("sh", "-c", _ACCOUNTS).out.splitlines()


def nfs(machine: Machine, *argv: str) -> Answer:
    return machine.nfs(*argv, limit_s=LONG_S)


def done(answer: Answer) -> list[str]:
    """What a ``--json`` command has changed."""
    assert answer.code == 0, answer
    return [step["text"] for step in json.loads(answer.out)["steps"] if step["state"] == "done"]


def refused(answer: Answer, words: str) -> None:
    """By the machine, in one sentence, and with nothing left half done."""
    assert answer.code == 4, answer
    assert words in answer.err
    assert "could not all be taken back" not in answer.err


def test_a_share_from_nothing_and_back(rig: Network) -> None:
    server, one, two = rig
    untouched = {machine.name: state(machine) for machine in rig}
    assert server.run("exportfs").code == 127, "a bare machine has no NFS"

    # While the server is set up, another package manager is at work on a client.
    holding = two.start(*two.python_argv(_HOLD_LOCK))
    assert two.await_(lambda: "held" in holding.said(), 280)
    mount = ("client", f"server:{SHARE}", POINT)
    two_waits = two.start(*two.python_argv("-m", "dispatcher.cli", "nfs", *mount))

    refused(nfs(server, "server", SHARE, "one", "--owner", "trial"), "no file system of its own")
    assert changed(untouched["server"], state(server)) == []
    export = ("server", SHARE, f"{SUBNET}.0/24", "--owner", "trial", "--shares-its-file-system")
    planned = nfs(server, *export, "--dry-run")
    assert planned.code == 0, planned
    assert r"+/srv/our\040weights 10.79.0.0/24(rw,sync,root_squash" in planned.out
    assert "install nfs-kernel-server" in planned.out
    assert changed(untouched["server"], state(server)) == [], "a plan is not carried out"

    asked = (*export, "--json")
    assert "install nfs-kernel-server" in done(nfs(server, *asked))
    assert server.run("cat", "/proc/fs/nfsd/versions").out.startswith("-3 "), "NFSv3 is off"
    assert done(nfs(server, *asked)) == []

    refused(two_waits.wait(LONG_S), "the package manager is at work for somebody else")
    assert changed(untouched["two"], state(two)) == []
    holding.signal("KILL")
    holding.wait()

    command = Machine.python_argv("-m", "dispatcher.cli", "nfs", *mount)
    for mounted in [running.wait(LONG_S) for running in [m.start(*command) for m in (one, two)]]:
        assert mounted.code == 0, mounted
        assert "hard: while the server is away" in mounted.err
    again = nfs(one, *mount)
    assert again.out.endswith("nothing to change: everything is so already\n"), again

    assert one.as_user("sh", "-c", f"echo mine >'{POINT}/file'") == (0, "", "")
    assert two.as_user("cat", f"{POINT}/file").out == "mine\n"
    assert server.run("stat", "-c", "%u %g", f"{SHARE}/file").out == "1234 1234\n"
    assert two.run("touch", f"{POINT}/roots").code != 0, "root of a client is nobody"
    shown = json.loads(nfs(server, "status", "--json").out)["shown"]
    assert shown["shares"][0]["exported"]
    assert {"one", "two"} <= {word for c in shown["server"]["clients"] for word in _words(c)}

    lacks = nfs(two, "client", f"server:{SHARE}", "/mnt/elsewhere", "--sec", "krb5p")
    refused(lacks, "this kernel lacks one of the options")
    assert "rpcsec_gss_krb5" in lacks.err
    assert two.run("test", "-e", "/mnt/elsewhere").code != 0

    # Another export: that changes and nothing else, and nobody on a client notices.
    shares = "--shares-its-file-system"
    narrower = done(nfs(server, "server", SHARE, "one", "two", shares, "--json"))
    assert len(narrower) == 1, narrower
    assert narrower[0].startswith("change /etc/exports.d/bequeath-")
    assert two.as_user("cat", f"{POINT}/file").out == "mine\n"

    refused(nfs(server, "undo"), "clients use this server")
    program = f"cd '{POINT}' && exec sleep 1000"
    keeper = one.start(*one.user_argv("sh", "-c", program))
    one.run("sh", "-c", "until pgrep -x sleep >/dev/null; do :; done")
    refused(nfs(one, "undo"), "(sleep)")
    keeper.signal("KILL")
    keeper.wait()

    command = Machine.python_argv("-m", "dispatcher.cli", "nfs", "undo")
    for undone in [running.wait(LONG_S) for running in [m.start(*command) for m in (one, two)]]:
        assert undone.code == 0, undone
    for client in (one, two):
        assert changed(untouched[client.name], state(client)) == []
    kept = nfs(server, "undo")
    assert kept.code == 0, kept
    assert "is not empty: it stays" in kept.out, "nobody's weights are removed"
    server.run("rm", f"{SHARE}/file")
    server.run("rmdir", SHARE)
    assert changed(untouched["server"], state(server)) == []


def _words(text: str) -> list[str]:
    return text.replace("/", " ").replace(".", " ").split()
