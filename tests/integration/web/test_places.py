"""Where a server listens and keeps its keys: what is somebody else's stays, and is named."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.web_server import PATIENCE_S, WebServer


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path leaves room for the name of a socket."""
    return tmp_path_factory.mktemp("s")


@pytest.fixture
def first(home: Path, tmp_path: Path, short: Path) -> Iterator[WebServer]:
    """A server at a Unix socket."""
    server = WebServer(home, tmp_path / "state", "--socket", str(short / "a"))
    yield server
    server.end()


def test_who_ends_leaves_the_socket_of_the_next_one(
    first: WebServer, home: Path, tmp_path: Path, short: Path
) -> None:
    """Mutation: whatever lies at the path is removed."""
    path = short / "a"
    path.unlink()
    second = WebServer(home, tmp_path / "state", "--socket", str(path))
    try:
        assert first.end() == 0
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(path))
    finally:
        second.end()
    assert not path.exists()


def test_a_socket_whose_owner_is_busy_is_not_taken(first: WebServer, short: Path) -> None:
    """Mutation: whoever cannot be asked just now is gone."""
    path = short / "busy"
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        waiting = []
        try:
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(str(path))
        except BlockingIOError:
            pass  # nobody else gets in
        inode = path.stat().st_ino
        said = first.command("web", "--socket", str(path), code=3)
        assert "another program has" in said
        assert "--socket" in said
        assert path.stat().st_ino == inode
        for one in waiting:
            one.close()


@pytest.mark.parametrize("kind", ["file", "link", "link to a socket", "folder"])
def test_what_is_no_socket_is_left_alone(first: WebServer, short: Path, kind: str) -> None:
    path = short / "thing"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(short / ("a" if kind == "link to a socket" else "none"))
    assert "no socket" in first.command("web", "--socket", str(path), code=3)
    assert os.path.lexists(path)
    assert (short / "a").exists()


def _started(server: WebServer, state: Path) -> tuple[int, str]:
    environment = server.environment | {"XDG_STATE_HOME": str(state)}
    server.environment = environment
    process = server.start("web", "--port", "0")
    try:
        _, said = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, said


def test_keys_in_a_folder_that_others_may_change_let_nobody_in(
    first: WebServer, tmp_path: Path
) -> None:
    folder = tmp_path / "open" / "bequeath" / "web"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    code, said = _started(first, tmp_path / "open")
    assert (code, "chmod 700" in said) == (3, True), said


@pytest.mark.parametrize("name", ["logs", "servers"])
def test_what_cannot_be_written_is_named(first: WebServer, tmp_path: Path, name: str) -> None:
    """Mutation: a fault of ours, with a traceback."""
    folder = tmp_path / "odd" / "bequeath" / "web"
    folder.mkdir(parents=True)
    (folder / name).write_text("a file where a folder should be")
    code, said = _started(first, tmp_path / "odd")
    assert code == 4, said
    assert str(folder / name) in said
    assert "Traceback" not in said
