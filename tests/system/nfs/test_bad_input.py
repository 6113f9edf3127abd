"""What people get wrong: one clear sentence, an exit code, and nothing half done.

On machines that have the packages; where a real machine adds nothing, the pretended one of
``tests/unit/nfs_setup`` is asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.system.nfs.look import changed, look
from tests.system.nfs.machine import Answer, Machine, Running
from tests.system.nfs.rig import Network, machines, why_not

pytestmark = [
    pytest.mark.extended,
    pytest.mark.needs("nfs"),
    pytest.mark.slow,
    pytest.mark.timeout(900),  # on a machine that is busy
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

#: The exit code: what was asked for is fine, and the machine is in the way.
MACHINE_REFUSES = 4

SHARES = "--shares-its-file-system"
SERVER = ("server", "/srv/w", "client", "--owner", "trial", SHARES)
CLIENT = ("client", "server:/srv/w", "/mnt/w")

#: Holds port 2049 as any program may.
_HOLD_PORT = """
import signal, socket
held = socket.create_server(("", 2049), family=socket.AF_INET6, dualstack_ipv6=True)
print("held", flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with machines(tmp_path_factory.mktemp("rig"), ["server", "client"]) as network:
        for machine in network:  # what a first look at NFS leaves behind, for good
            machine.run("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd")
            machine.run("exportfs", "-ra")
        yield network


@pytest.fixture(scope="module")
def server(rig: Network) -> Machine:
    return rig.machines[0]


@pytest.fixture(scope="module")
def client(rig: Network) -> Machine:
    return rig.machines[1]


@contextlib.contextmanager
def unchanged(machine: Machine) -> Iterator[None]:
    """Whatever fails within leaves nothing half done."""
    before = look(machine)
    yield
    assert changed(before, look(machine)) == []


def refused(machine: Machine, *command: str) -> str:
    """The error."""
    return _error(machine.nfs(*command))


def _error(answer: Answer) -> str:
    assert answer.code == MACHINE_REFUSES, answer
    assert "Traceback" not in answer.err
    assert "could not all be taken back" not in answer.err
    return answer.err


@pytest.fixture(scope="module")
def cut_off(rig: Network, server: Machine, client: Machine) -> tuple[Running, list[str]]:
    """A client that asks a server which is cut off, and what it was like before. It waits for
    most of a minute; meanwhile the server is asked for other things."""
    before = look(client)
    rig.cut(server)
    command = client.python_argv("-m", "dispatcher.cli", "nfs", *CLIENT)
    return client.start(*command), before


@pytest.mark.usefixtures("cut_off")
def test_paths_and_users_that_are_wrong(server: Machine) -> None:
    server.run("touch", "/srv/file")
    asked = ("client", "--owner", "trial")
    with unchanged(server):
        assert "/srv/file" in refused(server, "server", "/srv/file", *asked)
        assert "/srv/file" in refused(server, "server", "/srv/file/below", *asked)
        command = server.python_argv("-m", "dispatcher.cli", "nfs", *SERVER)
        said = _error(server.as_user(*command))
        assert "changes the system and needs root" in said
        assert "sudo" in said


def test_a_port_that_is_taken(server: Machine) -> None:
    holding = server.start(*server.python_argv(_HOLD_PORT))
    server.run("sh", "-c", "until ss -ltn | grep -q :2049; do :; done")
    try:
        with unchanged(server):
            said = refused(server, *SERVER)
        assert "something else listens at port 2049" in said
    finally:
        holding.signal("KILL")
        holding.wait()


def test_an_exports_file_that_somebody_broke(server: Machine) -> None:
    server.run("mkdir", "-p", "/etc/exports.d")
    for file in ("/etc/exports", "/etc/exports.d/their.exports"):
        server.run("sh", "-c", f"echo '/srv/x client(rw' >{file}")
        with unchanged(server):
            said = refused(server, *SERVER)
        assert f"{file}:1: syntax error" in said
        assert "mend the line" in said
        server.run("sh", "-c", f": >{file}")


def test_a_server_that_is_cut_off(
    rig: Network, server: Machine, client: Machine, cut_off: tuple[Running, list[str]]
) -> None:
    waiting, before = cut_off
    said = _error(waiting.wait(300))
    rig.heal(server)
    assert "does not answer at port 2049" in said
    assert changed(before, look(client)) == []


def test_a_mount_point_that_is_taken(client: Machine) -> None:
    client.run("mkdir", "-p", "/mnt/full", "/mnt/other")
    client.run("touch", "/mnt/file", "/mnt/full/file")
    client.run("mount", "-t", "tmpfs", "tmp", "/mnt/other")
    with unchanged(client):
        for point, word in (
            ("/mnt/file", "no folder"),
            ("/mnt/full", "holds 1 files that a mount would hide"),
            ("/mnt/other", "tmp (tmpfs) is mounted there already"),
        ):
            assert word in refused(client, "client", "server:/srv/w", point)


def test_hosts_that_are_wrong(server: Machine, client: Machine) -> None:
    with unchanged(server):
        assert "has no address here" in refused(server, "server", "/srv/w", "nowhere", SHARES)
    with unchanged(client):
        assert "has no address here" in refused(client, "client", "nowhere:/srv/w", "/mnt/w")
        assert "nothing answers at server port 2049" in refused(client, *CLIENT)
