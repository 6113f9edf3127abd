"""Whose a connection of this machine is, asked of the real kernel."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dispatcher.errors import UserError
from dispatcher.nni.rest import peers, settings
from dispatcher.nni.rest.peers import is_free, owner_of
from dispatcher.nni.rest.settings import checked_prefix

NOBODY = 65_534

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel says it on Linux only")


@contextmanager
def connected(host: str, program: str = "", uid: int | None = None) -> Iterator[socket.socket]:
    """Our end of a connection by a process of a user, which stays until its stdin ends."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    code = (
        "import os, socket, sys\n"
        "os.setuid(int(sys.argv[4]))\n"
        "family = getattr(socket, sys.argv[3])\n"
        "one = socket.socket(family)\n"
        "one.connect((sys.argv[1], int(sys.argv[2])))\n"
        f"{program}\n"
        "print('there', flush=True)\n"
        "sys.stdin.read()\n"
    )
    to, kind = (f"::ffff:{host}", "AF_INET6") if program == "mapped = True" else (host, family.name)
    user = str(os.getuid() if uid is None else uid)
    with socket.socket(family) as listening:
        listening.bind((host, 0))
        listening.listen()
        process = subprocess.Popen(
            [sys.executable, "-c", code, to, str(listening.getsockname()[1]), kind, user],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            ours, _ = listening.accept()
            assert process.stdout is not None
            assert process.stdout.readline() == b"there\n"
            with ours:
                yield ours
        finally:
            process.communicate()


def owner(ours: socket.socket) -> int | None:
    return owner_of(ours.getpeername()[:2], ours.getsockname()[:2])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_of_ours_is_ours(host: str) -> None:
    with connected(host) as ours:
        assert owner(ours) == os.getuid()


def test_a_client_of_ipv6_that_speaks_to_ipv4_is_known() -> None:
    """As those of Java are."""
    with connected("127.0.0.1", "mapped = True") as ours:
        assert owner(ours) == os.getuid()


@pytest.mark.skipif(os.getuid() != 0, reason="only root has processes of others")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_of_another_user_is_theirs(host: str) -> None:
    with connected(host, uid=NOBODY) as ours:
        assert owner(ours) == NOBODY


@pytest.mark.skipif(os.getuid() != 0, reason="only root has processes of others")
def test_a_connection_that_was_let_go_of_is_nobodys_and_not_roots() -> None:
    """Mutation: without the look at the inode the kernel's 0 would make it root's."""
    with connected("127.0.0.1", "one.close()", uid=NOBODY) as ours:
        assert owner(ours) is None


def test_what_is_not_there_is_nobodys() -> None:
    assert owner_of(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert owner_of(("name", 1), ("127.0.0.1", 2)) is None


def test_a_system_that_does_not_say_it_knows_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = dict.fromkeys((False, True), tmp_path / "none")
    with connected("127.0.0.1") as ours:
        monkeypatch.setattr(peers, "TABLES", gone)
        assert owner(ours) is None
        assert not peers.is_known_here()


def test_a_port_is_free_until_somebody_has_it() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        assert not is_free(port)
    assert is_free(port)


@pytest.mark.parametrize(
    "given, taken",
    [(None, ""), ("", ""), ("nni", "nni"), ("/a/b/", "a/b"), ("a_b.c~1", "a_b.c~1")],
)
def test_a_prefix_is_a_path(given: str | None, taken: str) -> None:
    assert checked_prefix(given) == taken


@pytest.mark.parametrize("given", ["a b", "a//b", "ä", "a?b", "x" * 200, "..%2f", "a\nb"])
def test_what_is_no_path_is_no_prefix(given: str) -> None:
    with pytest.raises(UserError, match="no prefix"):
        checked_prefix(given)


def test_where_nobody_is_known_the_prefix_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "is_known_here", lambda: False)
    made = {checked_prefix(None) for _ in range(5)}
    assert len(made) == 5
    assert all(len(one) >= settings.SECRET_LETTERS for one in made)
    assert checked_prefix("x" * 16) == "x" * 16
    with pytest.raises(UserError, match="secret"):
        checked_prefix("nni")
