"""Who is let in, and who is refused with which words."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.ssh import (
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LoginRefused,
    connect,
)
from dispatcher.ssh.known_hosts import our_file
from dispatcher.ssh.scanning import forget, learn, look_at_keys
from tests.support import sshd
from tests.support.processes import wait_until


def fingerprint(key: Path) -> str:
    """What ssh-keygen says of a key."""
    told = subprocess.run(["ssh-keygen", "-lf", str(key)], capture_output=True, check=True)
    return told.stdout.split()[1].decode()


def test_an_unknown_machine_is_refused_with_its_fingerprint(
    server: sshd.Sshd, tmp_path: Path
) -> None:
    target = server.target(known_hosts=tmp_path / "none")
    with pytest.raises(HostKeyUnknown) as caught:
        connect(target)
    assert fingerprint(server.folder / "host_key.pub") in str(caught.value)
    assert f"bequeath hosts add {target.label}" in caught.value.hint
    assert "Accepted" not in server.log().rpartition("Connection closed")[2]


def test_a_machine_is_made_known_and_forgotten(server: sshd.Sshd) -> None:
    target = server.target(known_hosts=None)
    shown = look_at_keys(target)
    assert [key.fingerprint for key in shown.keys] == [fingerprint(server.folder / "host_key.pub")]
    assert not shown.known
    assert learn(shown) == our_file()
    with connect(target) as made:
        assert made.run(["true"], limit_s=60).ok
    assert look_at_keys(target).known
    assert learn(shown).read_text().count("\n") == 1
    assert forget(target) == 1
    with pytest.raises(HostKeyUnknown):
        connect(target)


def test_a_machine_is_known_by_openssh_s_hashed_file(server: sshd.Sshd, tmp_path: Path) -> None:
    hashed = tmp_path / "hashed"
    shutil.copy(server.folder / "known_hosts", hashed)
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(hashed)], check=True, capture_output=True)
    assert hashed.read_text().startswith("|1|")
    connect(server.target(known_hosts=hashed)).close()


def test_a_changed_key_is_refused_loudly_and_nothing_is_sent(own: sshd.Sshd) -> None:
    connect(own.target()).close()
    own.kill()
    before = fingerprint(own.folder / "host_key.pub")
    (own.folder / "host_key").unlink()
    sshd.make_key(own.folder / "host_key")
    own.start()
    logged = len(own.log())
    with pytest.raises(HostKeyChanged) as caught:
        connect(own.target())
    words = str(caught.value)
    assert "HAS CHANGED" in words
    assert before in words
    assert fingerprint(own.folder / "host_key.pub") in words
    # Its server saw no user name and no key.
    assert "userauth" not in own.log()[logged:]
    with pytest.raises(HostKeyChanged):
        look_at_keys(own.target())


def test_the_known_kind_of_key_is_asked_for(own: sshd.Sshd, tmp_path: Path) -> None:
    own.kill()
    sshd.make_key(own.folder / "rsa_key", kind="rsa")
    own.extra = f"HostKey {own.folder}/rsa_key\n"
    own.start()
    words = (own.folder / "rsa_key.pub").read_text().split()[:2]
    (tmp_path / "known").write_text(f"[127.0.0.1]:{own.port} {' '.join(words)}\n")
    connect(own.target(known_hosts=tmp_path / "known")).close()
    assert {key.kind for key in look_at_keys(own.target()).keys} == {"ssh-rsa", "ssh-ed25519"}


def test_a_revoked_key_is_refused(server: sshd.Sshd, tmp_path: Path) -> None:
    line = (server.folder / "known_hosts").read_text()
    (tmp_path / "known").write_text(f"{line}@revoked * {' '.join(line.split()[1:])}\n")
    with pytest.raises(HostKeyChanged, match="revoked"):
        connect(server.target(known_hosts=tmp_path / "known"))


def test_a_wrong_user(server: sshd.Sshd) -> None:
    with pytest.raises(LoginRefused, match="does not let nobody-here in"):
        connect(server.target(user="nobody-here"))


def test_a_key_that_is_not_there(server: sshd.Sshd, tmp_path: Path) -> None:
    with pytest.raises(LoginRefused, match="no such key file"):
        connect(server.target(key_file=tmp_path / "none"))
    (tmp_path / "text").write_text("no key\n")
    with pytest.raises(LoginRefused, match="no private key that we know"):
        connect(server.target(key_file=tmp_path / "text"))


def test_no_key_at_all(server: sshd.Sshd, own: sshd.Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a machine is not shown to the one on the way to it, as by OpenSSH."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(own.folder))
    with pytest.raises(LoginRefused, match="tried: nothing to show") as caught:
        connect(server.target(jump=own.target(key_file=None)))
    assert "name a key (keyFile)" in caught.value.hint
    assert "jump: {host: …, keyFile: …}" in caught.value.hint


@pytest.fixture
def locked(server: sshd.Sshd, tmp_path: Path) -> Path:
    """The right key, with a passphrase."""
    path = tmp_path / "locked"
    shutil.copy(server.folder / "client_key", path)
    command = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "sesame", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


def test_a_key_with_a_passphrase(server: sshd.Sshd, locked: Path) -> None:
    with pytest.raises(LoginRefused, match="has a passphrase, and no agent holds it") as caught:
        connect(server.target(key_file=locked))
    assert f"ssh-add {locked}" in caught.value.hint
    connect(server.target(key_file=locked, passphrase="sesame")).close()
    with pytest.raises(LoginRefused, match="passphrase is wrong") as wrong:
        connect(server.target(key_file=locked, passphrase="S3cret"))
    assert "S3cret" not in f"{wrong.value}{wrong.value.__cause__!r}"


def test_a_passphrase_for_a_key_that_has_none(server: sshd.Sshd) -> None:
    connect(server.target(passphrase="sesame")).close()


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An ssh-agent of this test's own."""
    path = tmp_path / "agent"
    process = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert process.stdout is not None
    process.stdout.readline()  # it listens when it says where
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    yield
    process.kill()
    process.stdout.close()
    process.wait(60)


@pytest.mark.usefixtures("agent")
def test_a_key_of_the_agent(server: sshd.Sshd, locked: Path) -> None:
    add = ["ssh-add", "-q", str(server.folder / "client_key")]
    subprocess.run(add, check=True, capture_output=True)
    connect(server.target(key_file=None)).close()
    # The locked key's public half says that it is the one in the agent.
    shutil.copy(server.folder / "client_key.pub", f"{locked}.pub")
    connect(server.target(key_file=locked)).close()


def test_a_configuration_names_the_machine(server: sshd.Sshd, tmp_path: Path) -> None:
    shutil.copy(server.folder / "client_key", tmp_path / "key file")
    (tmp_path / "more").write_text(f"Host box\n  Port {server.port}\n")
    (tmp_path / "config").write_text(
        f"Include {tmp_path}/more\n"
        f"Host box\n  HostName 127.0.0.1\n  User {os.environ.get('USER', 'root')}\n"
        f'  IdentityFile "{tmp_path}/key file"\n  IdentitiesOnly yes\n'
        f"  UserKnownHostsFile {server.folder}/known_hosts\n"
    )
    target = server.target(
        host="box", port=0, key_file=None, known_hosts=None, config_file=tmp_path / "config"
    )
    with connect(target) as made:
        assert made.run(["true"], limit_s=60).ok
        assert made.label.startswith("box (")


def test_a_machine_behind_another(server: sshd.Sshd, own: sshd.Sshd) -> None:
    target = server.target(jump=own.target())
    with connect(target) as made:
        assert made.run(["echo", "far"], limit_s=60).out == b"far\n"
        assert "Accepted" in own.log()
        own.kill()
        wait_until(lambda: not made.is_alive(), "its end is noticed")
    with pytest.raises(HostUnreachable, match=f"port {own.port} refused"):
        connect(target)


def test_a_jump_host_that_cannot_reach_it(own: sshd.Sshd) -> None:
    target = own.target(port=sshd.free_port(), jump=own.target())
    with pytest.raises(HostUnreachable, match="the jump host cannot reach it"):
        connect(target)


def test_a_jump_host_must_be_known_too(server: sshd.Sshd, own: sshd.Sshd) -> None:
    target = server.target(jump=own.target(known_hosts=os.devnull))
    with pytest.raises(HostKeyUnknown) as caught:
        connect(target)
    assert str(own.port) in caught.value.where


def test_nobody_there(tmp_path: Path) -> None:
    sshd.make_key(tmp_path / "key")
    made = sshd.Sshd(tmp_path, sshd.free_port())
    with pytest.raises(HostUnreachable, match="refused the connection"):
        connect(made.target(key_file=tmp_path / "key"))
    with pytest.raises(HostUnreachable, match="no address for the name"):
        connect(made.target(host="no-such-machine.invalid"))


def test_somebody_who_is_no_ssh_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        made = sshd.Sshd(tmp_path, silent.getsockname()[1])
        target = made.target(connect_timeout_s=0.5, key_file=None)
        with pytest.raises(HostUnreachable, match=re.escape(f"port {made.port}")):
            connect(target)


def test_what_is_sent_waits_for_nobody_and_is_encrypted_in_one_go(server: sshd.Sshd) -> None:
    """Mutations: Nagle's algorithm stays on; paramiko's order of ciphers."""
    with connect(server.target()) as connection:
        transport = connection._first.transport
        line = transport.sock._inner
        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert transport.local_cipher.endswith("-gcm@openssh.com")


def test_a_server_without_those_ciphers(tmp_path: Path) -> None:
    server = sshd.running(tmp_path / "old", "Ciphers aes256-ctr\n")
    with server as old, connect(old.target()) as connection:
        assert connection._first.transport.local_cipher == "aes256-ctr"
        assert connection.run(["true"], limit_s=60).ok
