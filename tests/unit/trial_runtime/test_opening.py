"""Files that others may have put something else in place of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trial_runtime import facts
from trial_runtime.agent.base.logs import LogFile
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.agent.processes.record import write_private
from trial_runtime.opening import create_private, open_regular
from trial_runtime.session_file import SESSION_VERSION, SessionFile, write_session

FLAGS = {
    "read": os.O_RDONLY,
    "write": os.O_WRONLY,
    "make": os.O_WRONLY | os.O_CREAT,
    "begin anew": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "thesis"
    path.write_text("two hundred pages")
    return path


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS.keys())
def test_no_link_is_followed_and_no_pipe_waited_for(
    tmp_path: Path, secret: Path, flags: int
) -> None:
    """Mutation: without ``O_NONBLOCK`` this test stands still."""
    path = tmp_path / "it"
    path.symlink_to(secret)
    with pytest.raises(OSError):
        open_regular(str(path), flags)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError):
        open_regular(str(path), flags)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OSError, match="no regular file"):
        open_regular(str(path), flags)
    os.close(reader)
    assert secret.read_text() == "two hundred pages"


def test_a_private_file_takes_the_place_of_whatever_was_there(tmp_path: Path, secret: Path) -> None:
    """Mutation: ``O_TRUNC`` in place of ``O_EXCL``: a secret is written where a link leads, or
    into a file that its maker can read."""
    path = tmp_path / "it"
    path.symlink_to(secret)
    os.close(create_private(str(path)))
    assert not path.is_symlink()
    path.unlink()
    path.touch(0o666)
    path.chmod(0o666)
    with open(path, "rb") as held:
        with open(create_private(str(path)), "wb") as file:
            file.write(b"secret")
        assert held.read() == b""
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret.read_text() == "two hundred pages"


@pytest.mark.parametrize("what", ["session", "record", "spool"])
def test_what_holds_secrets_is_written_so(tmp_path: Path, secret: Path, what: str) -> None:
    path = tmp_path / "it"
    if what == "session":
        path.symlink_to(secret)
        session = SessionFile(SESSION_VERSION, "", "", 3, 1, "/nowhere", "{}")
        write_session(str(path), session)
    elif what == "record":
        (tmp_path / f"it.{os.getpid()}").symlink_to(secret)
        write_private(path, b"{}")
    else:
        (tmp_path / "it.new").symlink_to(secret)
        outbox = Outbox(str(path))
        for number in (1, 2):
            outbox.add(facts.AttemptStarted(number, 1, 1), urgent=False)
            outbox.spool()
        assert Outbox(str(path)).newest == 2
    assert secret.read_text() == "two hundred pages"
    assert path.is_file()
    assert not path.is_symlink()


def test_a_log_is_not_written_into_a_pipe_or_through_a_link(tmp_path: Path, secret: Path) -> None:
    for name, make in (("a", os.mkfifo), ("b", lambda path: os.symlink(secret, path))):
        path = tmp_path / name
        make(path)
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        log = LogFile(str(path), max_bytes=1 << 20, max_files=2)
        os.write(write_end, b"printed")
        log.pump(read_end)
        assert log.tail() == "printed"
        assert log.failed
        log.close()
        os.close(read_end)
        os.close(write_end)
    assert secret.read_text() == "two hundred pages"
