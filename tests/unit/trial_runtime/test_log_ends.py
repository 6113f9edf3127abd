"""What an agent hands in of the logs of an attempt that is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.workers import agent_config
from trial_runtime import facts, wire
from trial_runtime.agent.attempts.log_ends import MOST_BYTES, log_ends
from trial_runtime.agent.attempts.preparing import session_for
from trial_runtime.session_file import SessionFile


@pytest.fixture
def session(tmp_path: Path) -> SessionFile:
    config = agent_config(tmp_path, "pod")
    made = session_for(config, facts.StartAttempt(facts.WorkerId("pod"), 3, 2, "{}"), "ipc:///x")
    Path(made.folder).mkdir(parents=True)
    return made


def handed_in(session: SessionFile, most: int = 8) -> dict[str, wire.LogEnd]:
    ends = log_ends(session, most)
    assert ends is not None
    assert (ends.trial, ends.attempt) == (3, 2)
    return {each.name: each for each in ends.logs}


def test_nothing_is_read_where_the_files_outlive_the_agent(session: SessionFile) -> None:
    assert log_ends(session, 0) is None


def test_the_end_of_each_log_and_how_much_comes_before_it(session: SessionFile) -> None:
    """Mutations: the beginning; other files of the attempt; older parts count as logs."""
    there = Path(session.folder)
    (there / "stdout").write_bytes(b"0123456789")
    (there / "stdout.1").write_bytes(b"older")
    (there / "stderr.rank1").write_bytes(b"short")
    (there / "artefacts").mkdir()
    (there / "notes").write_bytes(b"x")
    found = handed_in(session)
    assert found.keys() == {"stdout", "stderr.rank1"}
    end = found["stdout"]
    assert (end.data, end.before, end.older) == (b"23456789", 2, 5)
    assert (found["stderr.rank1"].data, found["stderr.rank1"].before) == (b"short", 0)
    inode = str((there / "stdout").stat().st_ino)
    assert end.identity == inode
    assert end.version.startswith(f"{inode}-10-")


def test_one_that_has_printed_nothing_says_so(session: SessionFile) -> None:
    """Mutation: whoever asks for its output later hears that nobody has it."""
    assert handed_in(session) == {}
    Path(session.folder).rmdir()
    assert handed_in(session) == {}


def test_no_link_is_followed(session: SessionFile, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (Path(session.folder) / "stdout").symlink_to(tmp_path / "secret")
    (Path(session.folder) / "stderr").write_bytes(b"x")
    assert handed_in(session).keys() == {"stderr"}


def test_many_nodes_share_one_bound(session: SessionFile) -> None:
    for rank in range(wire.MAX_LOGS + 9):
        (Path(session.folder) / f"stdout.rank{rank}").write_bytes(b"x" * wire.MAX_LOG_END_BYTES)
    found = handed_in(session, wire.MAX_LOG_END_BYTES)
    assert len(found) == wire.MAX_LOGS
    assert sum(len(each.data) for each in found.values()) <= MOST_BYTES
