"""``bequeath nfs verify``: a table with what to change, JSON, exit codes; and doctor's own look."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dispatcher.cli.json_shapes import SHAPES
from dispatcher.cli.nfs import verify as nfs_verify
from dispatcher.errors import UserError
from nfs_setup.verify import Finding, Level
from tests.unit.cli.conftest import Shell


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


def test_a_good_folder_passes(bequeath: Shell, share: Path) -> None:
    said = bequeath("nfs", "verify", share, "--size", "1M")
    assert said.code == 0, said
    assert "✓ same bytes" in said.out
    assert "nothing is wrong" in said.out or " 0 wrong" in f" {said.out}"
    assert "add --from HOST" in said.out
    assert "locks" in said.err, "progress is no part of the answer"
    assert os.listdir(share) == []


def test_what_is_wrong_is_said_with_what_to_change(bequeath: Shell, share: Path) -> None:
    said = bequeath("nfs", "verify", share / "none")
    assert said.code == 1
    assert f"✗ wrong: share  {share}/none is not there [here]" in said.out
    assert "\n         mount the share" in said.out
    assert said.out.endswith("1 wrong, 0 slow\n")


def test_without_paramiko_the_extra_is_named(
    bequeath: Shell, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = bequeath("nfs", "verify", share, "--from", "gpu1")
    assert (said.code, "pip install 'bequeath[ssh]'" in said.err) == (4, True), said
    assert os.listdir(share) == []


def test_json_is_as_documented(bequeath: Shell, share: Path) -> None:
    said = bequeath("nfs", "verify", share / "none", "--json")
    document = json.loads(said.out)
    keys = SHAPES["nfs verify"].partition("{")[2].partition("}")[0].split(", ")
    assert list(document) == keys
    assert document["ok"] is False
    assert set(document["findings"][0]) == {"check", "where", "level", "seen", "change"}
    assert set(document["facts"]) >= {"machines", "rereads", "locks"}
    assert said.err == ""


@pytest.mark.parametrize(
    "words, text",
    [
        (("--not-here",), "nobody is left to ask"),
        (("--size", "big"), "is no size"),
        (("--size", "0M"), "not between"),
        (("--from", ":/x"), "is no machine"),
        (("--from", "-oProxyCommand=x"), "is no machine"),
    ],
)
def test_what_is_asked_wrongly(
    bequeath: Shell, share: Path, words: tuple[str, ...], text: str
) -> None:
    said = bequeath("nfs", "verify", share, *words)
    assert (said.code, text in said.err) == (3, True), said
    assert os.listdir(share) == []


def test_machines_and_folders_on_them() -> None:
    assert nfs_verify.host_and_path("a@b", "/mnt/w") == ("a@b", "/mnt/w")
    assert nfs_verify.host_and_path("b:/srv/w/", "/mnt/w") == ("b", "/srv/w")
    with pytest.raises(UserError):
        nfs_verify.host_and_path("", "/mnt/w")
    assert nfs_verify.bytes_of("2g") == 2 << 30


def test_text_from_elsewhere_is_made_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    finding = Finding("a", "b\x1b[31m", Level.WRONG, "c\x1b]0;x\x07", "d\x1b[0m")
    nfs_verify.show_findings([finding])
    assert "\x1b" not in capsys.readouterr().out
