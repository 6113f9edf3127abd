"""``~/.ssh/config`` and what is said beside it."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from dispatcher.errors import UserError
from dispatcher.ssh import SshTarget
from dispatcher.ssh.known_hosts import our_file
from dispatcher.ssh.user_config import Hop, way_to


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    return tmp_path


def configured(home: Path, text: str, **said: object) -> Hop:
    (home / "config").write_text(text)
    target = SshTarget(**({"host": "gpu1", "config_file": home / "config"} | said))  # type: ignore[arg-type]
    return way_to(target)[-1]


def test_without_a_configuration(home: Path) -> None:
    hop = way_to(SshTarget("gpu1", config_file=os.devnull))[-1]
    assert (hop.host, hop.port, hop.user) == ("gpu1", 22, getpass.getuser())
    assert hop.known_as == "gpu1"
    assert hop.key_files[0] == home / ".ssh/id_ed25519"
    assert not hop.only_these_keys
    assert hop.known_hosts[:2] == (our_file(), home / ".ssh/known_hosts")


_FULL = """
Host gpu1
  HostName 10.0.0.7
  Port 2222
  User trainer
  IdentityFile ~/.ssh/lab
  IdentitiesOnly yes
  IdentityAgent none
  HostKeyAlias the-gpu
  UserKnownHostsFile ~/lab_hosts ~/more_hosts
Host *
  User nobody
"""


def test_a_configuration_says_it_all(home: Path) -> None:
    hop = configured(home, _FULL)
    assert (hop.host, hop.port, hop.user) == ("10.0.0.7", 2222, "trainer")
    assert hop.key_files == (home / ".ssh/lab",)
    assert hop.only_these_keys
    assert not hop.uses_agent
    assert hop.known_as == "the-gpu"
    assert home / "lab_hosts" in hop.known_hosts
    assert home / ".ssh/known_hosts" not in hop.known_hosts
    assert hop.label == "gpu1 (trainer@10.0.0.7:2222)"


def test_what_is_said_wins(home: Path) -> None:
    hop = configured(home, _FULL, port=22, user="me", key_file="~/key", known_hosts=["/a", "/b"])
    assert (hop.host, hop.port, hop.user) == ("10.0.0.7", 22, "me")
    assert hop.key_files == (home / "key",)
    assert hop.only_these_keys
    assert hop.known_hosts == (Path("/a"), Path("/b"))


def test_the_user_s_own_file_is_read_by_default(home: Path) -> None:
    (home / ".ssh/config").write_text("Host gpu1\n  Port 77\n")
    assert way_to(SshTarget("gpu1"))[-1].port == 77


def test_jumps_by_name_in_a_row(home: Path) -> None:
    (home / "config").write_text(
        "Host gate\n  HostName gate.example.org\n  User door\n"
        "Host gpu1\n  ProxyJump gate,me@[fd00::2]:2200\n"
    )
    way = way_to(SshTarget("gpu1", config_file=home / "config"))
    assert [(hop.host, hop.port) for hop in way] == [
        ("gate.example.org", 22),
        ("fd00::2", 2200),
        ("gpu1", 22),
    ]
    assert [hop.user for hop in way[:2]] == ["door", "me"]


def test_a_jump_that_is_said_wins(home: Path) -> None:
    jump = SshTarget("other", config_file=os.devnull)
    (home / "config").write_text("Host gpu1\n  ProxyJump gate\n")
    way = way_to(SshTarget("gpu1", jump=jump, config_file=home / "config"))
    assert [hop.host for hop in way] == ["other", "gpu1"]


def test_no_jump_is_a_jump_to_none(home: Path) -> None:
    configured(home, "Host gpu1\n  ProxyJump none\nHost *\n  ProxyJump gate\n")


def test_jumps_in_a_circle(home: Path) -> None:
    with pytest.raises(UserError, match="more than 8 jump hosts"):
        configured(home, "Host *\n  ProxyJump gate\n")


def test_a_command_as_proxy_is_refused_with_the_way_out(home: Path) -> None:
    with pytest.raises(UserError, match="ProxyCommand is not supported") as caught:
        configured(home, "Host gpu1\n  ProxyCommand nc %h %p\n")
    assert "ProxyJump" in caught.value.hint
    configured(home, "Host gpu1\n  ProxyCommand none\n")


def test_files_are_included(home: Path) -> None:
    (home / ".ssh/conf.d").mkdir()
    (home / ".ssh/conf.d/a").write_text("Host gpu1\n  Port 77\n")
    (home / ".ssh/conf.d/b").write_text("Host gpu2\n  Port 78\n")
    hop = configured(home, "Include conf.d/*\nUser everybody\nHost gpu1\n  Port 79\n")
    assert (hop.port, hop.user) == (77, "everybody")


def test_a_file_that_includes_itself(home: Path) -> None:
    with pytest.raises(UserError, match="includes itself"):
        configured(home, f"Include {home}/config\n")


def test_what_is_no_configuration(home: Path) -> None:
    with pytest.raises(UserError, match="is no ssh configuration"):
        configured(home, "nonsense\n")
    with pytest.raises(UserError, match="no such ssh configuration"):
        way_to(SshTarget("gpu1", config_file=home / "none"))


def test_secrets_are_in_no_repr() -> None:
    inner = SshTarget("gate", password="sesame-1", passphrase="sesame-2")
    target = SshTarget("gpu1", password="sesame-3", jump=inner, config_file=os.devnull)
    assert "sesame" not in repr(target)
    assert "sesame" not in repr(way_to(target))


def test_labels() -> None:
    assert SshTarget("gpu1").label == "gpu1"
    assert SshTarget("fd00::1", port=22, user="me").label == "me@[fd00::1]:22"
