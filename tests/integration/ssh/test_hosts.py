"""Whole hosts in a network of their own: links cut and mended, power lost, ways in."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from dispatcher.findings import Severity
from dispatcher.platforms.ssh.hosts import SshHost
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.remote_python.findings import HostNeeds
from dispatcher.ssh import (
    ConnectionLost,
    HostUnreachable,
    LoginRefused,
    SshConnection,
    SshTarget,
    connect,
)
from tests.support import ssh_hosts
from tests.support.processes import wait_until

pytestmark = pytest.mark.skipif(bool(ssh_hosts.why_not()), reason=ssh_hosts.why_not())


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ssh_hosts.SshHosts]:
    """h1 as usual, h2 with passwords, h3 behind h1; they share the folder /weights."""
    folder = tmp_path_factory.mktemp("hosts")
    share = folder / "share"
    share.mkdir()
    with ssh_hosts.ssh_hosts(folder / "h", 3, shares={"/weights": share}) as made:
        made.restart_sshd("h2", "PasswordAuthentication yes\nPubkeyAuthentication no\n")
        made.hide("h3")
        yield made


@pytest.fixture
def h1(hosts: ssh_hosts.SshHosts) -> Iterator[SshConnection]:
    """A connection to the first that notices silence soon."""
    with connect(_quick(hosts["h1"].target()), dial=hosts.dial) as made:
        yield made


def put(connection: SshConnection, path: str, data: bytes) -> bool:
    """Write a file there; whether it could be."""
    return connection.run(["sh", "-c", 'cat > "$1"', "sh", path], stdin=data, limit_s=60).ok


def got(connection: SshConnection, path: str) -> bytes | None:
    """A file there; None if there is none."""
    ran = connection.run(["cat", path], limit_s=60)
    return ran.out if ran.ok else None


def _quick(target: SshTarget) -> SshTarget:
    """Silence is noticed soon; it is long enough for a busy machine to answer."""
    return replace(target, keepalive_s=0.5, silent_s=6.0)


def test_hosts_are_apart_but_for_what_they_share(
    hosts: ssh_hosts.SshHosts, h1: SshConnection
) -> None:
    mine = f"/tmp/bequeath-{os.getpid()}"
    put(h1, mine, b"x")
    put(h1, "/weights/ours", b"x")
    assert not Path(mine).exists()
    assert (hosts["h1"].disk / mine[1:]).exists()
    with connect(hosts["h3"].target(jump=hosts["h1"].target()), dial=hosts.dial) as h3:
        assert h3.run(["hostname"], limit_s=60).out == b"h3\n"
        assert got(h3, mine) is None
        assert got(h3, "/weights/ours") == b"x"


def test_a_process_on_the_client_s_side_reaches_them(hosts: ssh_hosts.SshHosts) -> None:
    command = ["ssh", "-F", str(hosts.ssh_config), "h1", "hostname"]
    with hosts.inside(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.communicate(timeout=120)[0] == b"h1\n"


def test_a_host_behind_another(hosts: ssh_hosts.SshHosts) -> None:
    with pytest.raises(HostUnreachable):
        connect(hosts["h3"].target(connect_timeout_s=2.0), dial=hosts.dial)
    config = hosts.folder / "jump_config"
    config.write_text("Host h3\n  ProxyJump h1\n" + hosts.ssh_config.read_text())
    target = SshTarget("h3", config_file=config, connect_timeout_s=30)
    with connect(target, dial=hosts.dial) as made:
        assert made.run(["hostname"], limit_s=60).out == b"h3\n"


def test_a_password(hosts: ssh_hosts.SshHosts) -> None:
    def target(password: str) -> SshTarget:
        return hosts["h2"].target(user=ssh_hosts.USER, key_file=None, password=password)

    right = target(ssh_hosts.PASSWORD)
    assert ssh_hosts.PASSWORD not in repr(right)
    with connect(right, dial=hosts.dial) as made:
        assert made.run(["id", "-un"], limit_s=60).out == f"{ssh_hosts.USER}\n".encode()
        assert ssh_hosts.PASSWORD not in repr(vars(made))
    with pytest.raises(LoginRefused, match="tried: the password; it takes: password") as caught:
        connect(target("wr0ng-word"), dial=hosts.dial)
    assert "wr0ng-word" not in str(caught.value)
    with pytest.raises(LoginRefused) as without:
        connect(target(""), dial=hosts.dial)
    assert "password" in without.value.hint


def test_a_short_cut_costs_nothing(hosts: ssh_hosts.SshHosts, h1: SshConnection) -> None:
    with ThreadPoolExecutor(1) as pool:
        begun = hosts["h1"].disk / "tmp/begun"
        running = pool.submit(h1.run, ["sh", "-c", "touch /tmp/begun; cat; echo done"], limit_s=120)
        wait_until(begun.exists, "the command begins")
        hosts.cut("h1")
        hosts.heal("h1")
        assert running.result(120).out == b"done\n"
    begun.unlink()


def test_a_cut_link_is_noticed_and_the_host_found_again(
    hosts: ssh_hosts.SshHosts, h1: SshConnection
) -> None:
    begun = hosts["h1"].disk / "tmp/begun"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(h1.run, ["sh", "-c", "touch /tmp/begun; sleep 600"], limit_s=500)
        wait_until(begun.exists, "the command begins")
        hosts.cut("h1")
        try:
            with pytest.raises(ConnectionLost, match="nothing heard"):
                running.result(120)
            with pytest.raises(HostUnreachable, match="did not answer"):
                connect(hosts["h1"].target(connect_timeout_s=2.0), dial=hosts.dial)
        finally:
            hosts.heal("h1")
    target = hosts["h1"].target()
    with _found_again(target, hosts) as made:
        assert made.run(["true"], limit_s=60).ok
        made.run(["pkill", "-x", "sleep"], limit_s=60)  # in the sandbox's own processes only
    begun.unlink()


def _found_again(target: SshTarget, hosts: ssh_hosts.SshHosts) -> SshConnection:
    """A connection to a host whose link was mended just now."""
    made: list[SshConnection] = []

    def stands() -> bool:
        with contextlib.suppress(HostUnreachable):
            made.append(connect(target, dial=hosts.dial))
        return bool(made)

    wait_until(stands, "the host is found again")
    return made[0]


def test_a_link_cut_behind_the_jump_host(hosts: ssh_hosts.SshHosts) -> None:
    target = _quick(hosts["h3"].target(jump=_quick(hosts["h1"].target())))
    with connect(target, dial=hosts.dial) as made:
        hosts.cut("h3")
        try:
            wait_until(lambda: not made.is_alive(), "the cut is noticed")
        finally:
            hosts.heal("h3")


def test_a_host_without_power_and_back(hosts: ssh_hosts.SshHosts, h1: SshConnection) -> None:
    put(h1, "/tmp/kept", b"x")
    hosts.crash("h1")
    wait_until(lambda: not h1.is_alive(), "its end is noticed")
    hosts.start("h1")
    with connect(hosts["h1"].target(), dial=hosts.dial) as made:
        assert got(made, "/tmp/kept") == b"x"


def test_what_a_host_lacks_is_said(hosts: ssh_hosts.SshHosts) -> None:
    def look(needs: HostNeeds, **named: str) -> dict[str, tuple[Severity, str]]:
        machine = Machine("h1", hosts["h1"].target, **named)  # type: ignore[arg-type]
        found = SshHost(machine, "h1", dial=hosts.dial).check(needs)
        return {one.topic: (one.severity, one.text + one.hint) for one in found}

    seen = look(HostNeeds(modules=("json", "no_such_module"), folders={"/weights": "token"}))
    assert seen["login"][0] is Severity.OK
    assert seen["python"][0] is Severity.OK
    assert seen["modules"][0] is Severity.PROBLEM
    assert "pip install no_such_module" in seen["modules"][1]
    assert seen["weights"] == (
        Severity.PROBLEM,
        "/weights is another folderis the share mounted there? a file that we made in our "
        "weights root is not in it",
    )
    assert seen["clock"][0] is Severity.OK
    Path(hosts["h1"].shares["/weights"], "token").touch()
    assert "cores" not in seen
    good = look(HostNeeds(modules=("json",), folders={"/weights": "token"}, cpus=0.5))
    assert {verdict for verdict, _ in good.values()} == {Severity.OK}
    assert look(HostNeeds(oldest=(9, 9)))["python"][0] is Severity.PROBLEM
    many = look(HostNeeds(cpus=1e6))["cores"]
    assert many[0] is Severity.PROBLEM
    assert "each trial needs 1e+06 (trialCpuNumber)" in many[1]
    assert look(HostNeeds(), python="python1")["python"][0] is Severity.PROBLEM
    assert look(HostNeeds(folders={"/nowhere": ""}))["weights"][0] is Severity.PROBLEM
    with connect(hosts["h1"].target(), dial=hosts.dial) as made:
        assert made.run(["mkdir", "-m", "777", "/tmp/open"], limit_s=60).ok
        seen = look(HostNeeds(), work_folder="/tmp/open")
        assert made.run(["rmdir", "/tmp/open"], limit_s=60).ok
    assert seen["disk"][0] is Severity.PROBLEM
    assert "/tmp/open can be changed by other users (mode 777)" in seen["disk"][1]
    seen = look(HostNeeds(), work_folder=f"{ssh_hosts.SMALL_DISK}/x")
    assert seen["disk"][0] is Severity.NOTE
    assert "little room" in seen["disk"][1]
    with connect(hosts["h1"].target(), dial=hosts.dial) as made:
        put(made, f"{ssh_hosts.SMALL_DISK}/fill", b"x" * (ssh_hosts.SMALL_BYTES - (1 << 20)))
        seen = look(HostNeeds(), work_folder=f"{ssh_hosts.SMALL_DISK}/x")
        assert made.run(["rm", f"{ssh_hosts.SMALL_DISK}/fill"], limit_s=60).ok
    assert seen["disk"][0] is Severity.PROBLEM
    assert "no room" in seen["disk"][1]
    refused = SshHost(Machine("h2", hosts["h2"].target), "h2", dial=hosts.dial).check(HostNeeds())
    assert [(one.topic, one.severity) for one in refused] == [("login", Severity.PROBLEM)]


def test_nothing_of_them_is_left(tmp_path: Path) -> None:
    with ssh_hosts.ssh_hosts(tmp_path / "h", 1) as made:
        process = made["h1"].first_pid
        names = os.listdir("/run/netns")
        assert made.network.client in names
    assert made.network.client not in os.listdir("/run/netns")
    wait_until(lambda: not Path(f"/proc/{process}/root").exists(), "its first process is gone")
