"""``bequeath nfs``: whose fault it is, and plans that change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.cli.json_shapes import SHAPES
from tests.unit.cli.conftest import Shell
from tests.unit.nfs_setup.pretended import Pretended

SHARES = "--shares-its-file-system"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretended:
    """Stands in for this machine, which no test may change."""
    pretended = Pretended(tmp_path / "machine")
    monkeypatch.setattr("nfs_setup.local_host.LocalHost", lambda: pretended)
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.delenv("SUDO_GID", raising=False)
    return pretended


def test_a_share_is_set_up_and_taken_back(bequeath: Shell, machine: Pretended) -> None:
    command = ("nfs", "server", "/srv/w", "10.0.0.0/24", "--owner", "1000", SHARES)
    said = bequeath(*command)
    assert said.code == 0, said
    assert "✓ install nfs-kernel-server" in said.out
    assert "note: sec=sys believes" in said.err
    assert bequeath(*command).out.endswith("nothing to change: everything is so already\n")
    assert "exports /srv/w" in bequeath("nfs", "status").out
    assert "planned: undo: /srv/w" in bequeath("nfs", "undo", "--dry-run").out
    assert bequeath("nfs", "undo").code == 0
    assert bequeath("nfs", "undo").out == "nothing to undo\n"
    assert bequeath("nfs", "status").out == "nothing was set up on this machine\n"


def test_options_are_explained(bequeath: Shell, machine: Pretended) -> None:
    said = bequeath("nfs", "client", "server:/srv/w", "/mnt/w", "--dry-run")
    assert said.out.endswith("nothing was changed (--dry-run)\n")
    assert "hard: while the server is away programs wait" in said.err
    assert machine.ran == []


@pytest.mark.parametrize(
    "words, code, text",
    [
        (("server", "/srv/w", "*", "--owner", "1000"), 3, "means everybody"),
        (("server", "/srv/w", "10.0.0.1/24", "--owner", "1000"), 3, "write 10.0.0.0/24"),
        (("server", "/srv/w", "a\nb", "--owner", "1000"), 3, "neither a host name"),
        (("server", "/etc/fstab", "a", "--owner", "1000"), 4, "is no folder"),
        (("server", "/srv/w", "a", "--owner", "1000"), 4, "is no file system of its own"),
        (("server", "/srv/w", "a", SHARES), 3, "add --owner USER"),
        (("client", "nowhere", "/mnt/w"), 3, "write it as server:/srv/weights"),
        (("undo", "/mnt/w"), 3, "was not set up here"),
        (("server", "/srv/w"), 2, "Missing argument"),
    ],
)
def test_errors_say_whose_fault_it_is(
    bequeath: Shell, machine: Pretended, words: tuple[str, ...], code: int, text: str
) -> None:
    said = bequeath("nfs", *words)
    assert (said.code, text in said.err) == (code, True), said
    assert machine.ran == []


def test_who_calls_sudo_owns_the_folder(
    bequeath: Shell, machine: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "1017")
    monkeypatch.setenv("SUDO_GID", "1018")
    said = bequeath("nfs", "server", "/srv/bequeath-test", "a", SHARES, "--dry-run")
    assert "owner 1017 (1017), group 1018 (1018)" in said.out


def test_without_root_a_sentence_says_so(bequeath: Shell, machine: Pretended) -> None:
    machine.root = False
    said = bequeath("nfs", "client", "server:/srv/w", "/mnt/w")
    assert said.code == 4
    assert "needs root" in said.err
    assert bequeath("nfs", "status").code == 4


def test_what_a_failure_leaves_is_said(bequeath: Shell, machine: Pretended) -> None:
    from nfs_setup.host import Ran

    machine.fail["mount"] = Ran(32, "", "mount.nfs4: Connection refused")
    said = bequeath("nfs", "client", "server:/srv/w", "/mnt/w")
    assert said.code == 4
    assert "nothing answers at server port 2049" in said.err
    assert "nothing was left half done" in said.err


@pytest.mark.parametrize("verb", ["server", "client", "status", "undo"])
def test_json_is_as_documented(bequeath: Shell, machine: Pretended, verb: str) -> None:
    words = {
        "server": ("/srv/w", "a", "--owner", "1000", SHARES, "--dry-run"),
        "client": ("server:/w", "/mnt/w", "--dry-run"),
    }.get(verb, ())
    document = bequeath("nfs", verb, *words, "--json").json()
    keys = SHAPES[f"nfs {verb}"].partition("{")[2].partition("}")[0].split(", ")
    assert list(document) == keys
