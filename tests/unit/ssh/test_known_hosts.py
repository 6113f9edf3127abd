"""Files of known hosts: what counts as known, changed and revoked."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import stat
from pathlib import Path

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.ssh import HostKeyChanged, HostKeyUnknown
from dispatcher.ssh.host_key import HostKey
from dispatcher.ssh.known_hosts import KnownKeys, add, name_of, our_file, parse, read, remove
from dispatcher.ssh.login import check_key
from dispatcher.ssh.scanning import OfferedKeys, learn
from dispatcher.ssh.target import SshTarget
from dispatcher.ssh.user_config import way_to

KEY = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519 one")
OTHER = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519 two")


def known(text: str, name: str) -> KnownKeys:
    return KnownKeys.of(name, parse(text, Path("known")))


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    "names, name, fits",
    [
        ("gpu1", "gpu1", True),
        ("gpu1", "gpu10", False),
        ("GPU1", "gpu1", True),
        ("gpu1,10.0.0.1", "10.0.0.1", True),
        ("*.example.org", "gpu1.example.org", True),
        ("*.example.org,!gpu1.example.org", "gpu1.example.org", False),
        ("gpu?", "gpu1", True),
        ("[gpu1]:2222", "[gpu1]:2222", True),
        ("[gpu1]:2222", "gpu1", False),
        ("gpu1", "[gpu1]:2222", False),
        ("[*]:2222", "[gpu1]:2222", True),
        (hashed("gpu1"), "gpu1", True),
        (hashed("gpu1"), "gpu2", False),
        (hashed("[gpu1]:2222"), "[gpu1]:2222", True),
        ("|1|broken", "gpu1", False),
        ("|1|a|!", "gpu1", False),
    ],
)
def test_whom_a_line_speaks_of(names: str, name: str, fits: bool) -> None:
    assert known(f"{names} {KEY.text} a comment\n", name).has(KEY) is fits


def test_names_as_openssh_writes_them() -> None:
    assert name_of("GPU1", 22) == "gpu1"
    assert name_of("fd00::1", 2222) == "[fd00::1]:2222"


def test_fingerprints_as_openssh_prints_them() -> None:
    line = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    key = HostKey("ssh-ed25519", base64.b64decode(line))
    assert key.fingerprint == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


def test_lines_that_are_none_are_passed_over() -> None:
    text = f"\n# {KEY.text}\ngpu1\ngpu1 ssh-ed25519\ngpu1 ssh-ed25519 ???\n\0\n gpu1 {KEY.text}\n"
    assert known(text, "gpu1").has(KEY)
    assert len(list(parse(text, Path("x")))) == 1


def test_a_revoked_key_is_not_known() -> None:
    found = known(f"gpu1 {KEY.text}\n@revoked * {KEY.text}\n", "gpu1")
    assert not found.has(KEY)
    assert found.revoked(KEY) is not None
    assert found.revoked(OTHER) is None


def test_an_authority_makes_nothing_known() -> None:
    assert not known(f"@cert-authority * {KEY.text}\n", "gpu1").trusted()


def test_added_once_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "new" / "known_hosts"
    assert add(path, "gpu1", [KEY]) == 1
    assert add(path, "gpu1", [KEY, OTHER]) == 1
    assert add(path, "gpu2", [KEY]) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KnownKeys.of("gpu1", read([path])).has(OTHER)
    assert remove(path, "gpu1") == 2
    assert remove(path, "gpu1") == 0
    assert path.read_text() == f"gpu2 {KEY.text}\n"
    assert os.listdir(path.parent) == ["known_hosts"]
    assert remove(tmp_path / "none", "gpu1") == 0


def test_what_others_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_bytes(b"# mine \xff\ngpu1,gpu2 " + KEY.text.encode())
    add(path, "gpu3", [OTHER])
    assert remove(path, "gpu1") == 0  # it speaks of gpu2, too
    assert remove(path, "gpu3") == 1
    assert path.read_bytes() == b"# mine \xff\ngpu1,gpu2 " + KEY.text.encode() + b"\n"


def test_a_file_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    assert read([tmp_path / "none"]) == []
    with pytest.raises(PermanentBackendError, match="known hosts cannot be read"):
        read([tmp_path])


def test_our_file_lies_with_the_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEQUEATH_HOME", "/data/bequeath")
    assert our_file() == Path("/data/bequeath/known_hosts")
    monkeypatch.delenv("BEQUEATH_HOME")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/home/x/.config")
    assert our_file() == Path("/home/x/.config/bequeath/known_hosts")


def test_the_two_refusals(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    target = SshTarget("gpu1", port=2222, user="me", known_hosts=path, config_file=os.devnull)
    hop = way_to(target)[-1]
    with pytest.raises(HostKeyUnknown) as unknown:
        check_key(hop, KEY)
    assert unknown.value.key == KEY
    assert KEY.fingerprint in unknown.value.message
    assert "bequeath hosts add me@gpu1:2222" in unknown.value.hint
    add(path, "[gpu1]:2222", [OTHER])
    with pytest.raises(HostKeyChanged) as changed:
        check_key(hop, KEY)
    assert f"ssh-keygen -f {path} -R '[gpu1]:2222'" in changed.value.hint
    assert OTHER.fingerprint in changed.value.message
    add(path, "[gpu1]:2222", [KEY])
    check_key(hop, KEY)


def test_a_key_of_another_kind_counts_as_changed(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    add(path, "gpu1", [HostKey("ssh-rsa", b"rsa")])
    hop = way_to(SshTarget("gpu1", known_hosts=path, config_file=os.devnull))[-1]
    with pytest.raises(HostKeyChanged):
        check_key(hop, KEY)


def test_only_keys_that_are_vouched_for_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was shown in a connection of its own: somebody may sit in one of them only."""
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path))
    path = learn(OfferedKeys("gpu1", (KEY, OTHER), known=False), KEY.fingerprint)
    assert [line.key for line in read([path])] == [KEY]
    learn(OfferedKeys("gpu1", (KEY, OTHER), known=True, known_keys=(KEY,)))
    assert [line.key for line in read([path])] == [KEY]
    learn(OfferedKeys("gpu1", (KEY, OTHER), known=False))
    assert [line.key for line in read([path])] == [KEY, OTHER]
