"""Programs that fetch credentials: real small ones, good and bad."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dispatcher.http_services.credentials import Certificate, FetchedProof
from dispatcher.platforms.kubernetes.api import exec_plugin
from dispatcher.platforms.kubernetes.api.errors import NotLoggedIn
from dispatcher.platforms.kubernetes.api.exec_plugin import VERSIONS, ExecPlugin

V1 = VERSIONS[0]
Program = Callable[..., ExecPlugin]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def make(script: str, version: str = V1, **more: Any) -> ExecPlugin:
        path = tmp_path / "login"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        return ExecPlugin(version, str(path), where="config:3:4", **more)

    return make


def printing(status: Mapping[str, Any], version: str = V1) -> str:
    document = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return f"cat <<'END'\n{json.dumps(document)}\nEND"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_token_with_an_end(version: str, program: Program) -> None:
    status = {"token": "abc", "expirationTimestamp": "2026-11-23T09:00:00Z"}
    proof, until = program(printing(status, version), version).fetch()
    assert proof == ("Bearer abc", None)
    assert until == 1795424400.0


def test_a_certificate_and_no_end(program: Program) -> None:
    status = {"clientCertificateData": "CHAIN", "clientKeyData": "KEY"}
    proof, until = program(printing(status)).fetch()
    assert proof == ("", Certificate(b"CHAIN", b"KEY"))
    assert until is None


BAD = {
    "exit": ("echo one >&2; echo log in first >&2; exit 3", "exited with 3: log in first"),
    "silent exit": ("exit 1", "exited with 1\n"),
    "nothing": ("true", "printed no ExecCredential"),
    "prose": ("echo please wait", "printed no ExecCredential"),
    "no status": ('echo \'{"apiVersion": "x"}\'', "printed no ExecCredential"),
    "another version": (printing({"token": "a"}, VERSIONS[1]), "answered in .*v1beta1"),
    "empty": (printing({}), "neither a token nor a certificate"),
    "half": (printing({"clientCertificateData": "x"}), "a certificate without its key"),
    "no time": (printing({"token": "a", "expirationTimestamp": "soon"}), "expirationTimestamp"),
    "too much": ("head -c 1100000 /dev/zero", "printed more than 1 MiB"),
    "brackets only": ("head -c 300000 /dev/zero | tr '\\0' '['", "printed no ExecCredential"),
    "no token": (printing({"token": "a b"}), "holds no token"),
}


@pytest.mark.parametrize("script, sentence", BAD.values(), ids=BAD.keys())
def test_what_it_does_wrong_is_a_sentence(script: str, sentence: str, program: Program) -> None:
    with pytest.raises(NotLoggedIn, match=sentence) as caught:
        program(script).fetch()
    assert caught.value.where.startswith("config:3:4: ")


def test_one_that_is_not_installed_gives_its_authors_hint() -> None:
    plugin = ExecPlugin(V1, "no-such-login-program", hint="Install the SDK")
    with pytest.raises(NotLoggedIn, match="cannot be run: No such file") as caught:
        plugin.fetch()
    assert caught.value.hint == "Install the SDK"


def test_one_that_hangs_is_ended(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "LIMIT_S", 0.2)
    with pytest.raises(NotLoggedIn, match="has not answered"):
        program("exec sleep 60").fetch()


def test_it_finds_no_terminal_and_no_input(program: Program) -> None:
    script = 'read -r line; [ -z "$line" ] || exit 4; ( : </dev/tty ) 2>/dev/null && exit 5\n'
    proof, _ = program(script + printing({"token": "abc"})).fetch()
    assert proof.authorization == "Bearer abc"


def test_it_is_run_again_at_its_end_and_when_it_is_refused(
    program: Program, tmp_path: Path
) -> None:
    count = tmp_path / "count"
    script = (
        f'echo x >> {count}; n=$(wc -l < {count}); printf \'{{"apiVersion": "{V1}", "status": '
        '{"token": "t%s", "expirationTimestamp": "1970-01-01T00:05:00Z"}}\' $n'
    )
    now = [0.0]
    fetched = FetchedProof(program(script).fetch, lambda: now[0])
    assert [fetched.proof().authorization for _ in range(3)] == ["Bearer t1"] * 3
    now[0] = 300 - FetchedProof.EARLY_S
    assert fetched.proof().authorization == "Bearer t2"
    now[0] = 0.0
    assert fetched.refused()  # the server knows the token no more
    assert fetched.proof().authorization == "Bearer t3"
    assert "t3" not in repr(fetched)
