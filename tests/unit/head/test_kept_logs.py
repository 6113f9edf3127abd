"""Logs that agents hand in are kept beside what was fetched, for those who ask when the place has
gone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from dispatcher.attempt_files import kept_logs, log_stream
from dispatcher.attempt_files.attempt_at import AttemptAt
from dispatcher.attempt_files.else_kept import FilesElseKept
from dispatcher.attempt_files.fetched import Fetched, logs_are_kept
from dispatcher.attempt_files.kept_logs import LogKeeper, keep
from dispatcher.attempt_files.ways import files_here, is_fetched, why_in_part
from dispatcher.errors import PassingBackendError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.ports import FileList, FilePiece
from tests.unit.queries.evolution import evolve, make_folder
from trial_runtime import wire

POD = "pod"
ONE = AttemptAt(POD, 4, 1)


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    made = make_folder(tmp_path / "kept")
    evolve(made, 6)
    with sqlite3.connect(made / "journal.sqlite") as raw:
        raw.execute("UPDATE attempts SET worker = ? WHERE trial = 4", (POD,))
    return ExperimentFolder(made)


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def keeper(folder: ExperimentFolder, notes: list[str]) -> Iterator[LogKeeper]:
    made = LogKeeper(folder, 0, notes.append)
    yield made
    made.close()


def ends(data: bytes, before: int = 0, *, trial: int = 4, inode: str = "7") -> wire.LogEnds:
    version = f"{inode}-{before + len(data)}-1"
    return wire.LogEnds(trial, 1, [wire.LogEnd("stdout", data, before, 0, version, inode)])


def output(folder: ExperimentFolder) -> bytes:
    return b"".join(log_stream.whole(files_here(folder, ONE), "stdout"))


def test_logs_are_there_when_the_head_has_ended(
    folder: ExperimentFolder, keeper: LogKeeper
) -> None:
    """Mutation: what waits is lost with the head."""
    keeper.take(POD, [ends(b"hello\n"), wire.LogEnds(3, 1, [])])
    keeper.close()
    assert output(folder) == b"hello\n"
    assert is_fetched(folder, ONE, "logs"), "nobody is asked any more"
    assert why_in_part(folder, ONE, "stdout") == ""


def test_of_a_long_log_it_is_known_what_is_lacking(
    folder: ExperimentFolder, keeper: LogKeeper
) -> None:
    """Mutation: it passes for the whole, and an agent that has all of it is not asked."""
    keeper.take(POD, [ends(b"end\n", before=12_345)])
    keeper.close()
    assert output(folder) == b"end\n"
    assert not is_fetched(folder, ONE, "logs")
    assert logs_are_kept(folder, ONE)
    assert why_in_part(folder, ONE, "stdout") == "its first 12,345 bytes are gone with its place"


def test_one_that_has_printed_nothing_is_known_to_have(
    folder: ExperimentFolder, keeper: LogKeeper
) -> None:
    keeper.take(POD, [wire.LogEnds(4, 1, [])])
    keeper.close()
    assert is_fetched(folder, ONE, "logs")
    assert output(folder) == b""


def test_an_agent_writes_no_logs_of_others(folder: ExperimentFolder, keeper: LogKeeper) -> None:
    """Its machine may be somebody else's. Mutation: it speaks for a trial of this machine."""
    keeper.take(POD, [ends(b"lies", trial=3), ends(b"true")])
    keeper.close()
    assert not folder.attempt(3, 1).exists()
    assert output(folder) == b"true"


def test_no_name_leads_out_of_the_folder(folder: ExperimentFolder, keeper: LogKeeper) -> None:
    names = ("../../stdout", "stdout/../x", ".fetched.json", "stdout.1", "")
    logs = [wire.LogEnd(name, b"x") for name in names]
    keeper.take(POD, [wire.LogEnds(4, 1, logs)])
    keeper.close()
    assert [each.name for each in folder.attempt(4, 1).iterdir()] == [".fetched.json"]
    assert Fetched.read(folder.attempt(4, 1), "4.1").files == {}


def test_an_end_may_come_before_the_journal_has_it(folder: ExperimentFolder) -> None:
    """The engine commits a moment later. Mutation: the logs of a trial that starts and ends within
    one batch are dropped."""
    with sqlite3.connect(folder.journal) as raw:
        raw.execute("UPDATE attempts SET attempt = 9 WHERE trial = 4")
    looked = 0

    def commit(_seconds: float) -> None:
        nonlocal looked
        looked += 1
        with sqlite3.connect(folder.journal) as raw:
            raw.execute("UPDATE attempts SET attempt = 1 WHERE trial = 4")

    keeper = LogKeeper(folder, 0, lambda _: None, pause=commit)
    keeper.take(POD, [ends(b"quick")])
    keeper.close()
    assert looked == 1
    assert output(folder) == b"quick"


def test_a_disk_that_is_low_gets_none_and_says_so_once(
    folder: ExperimentFolder, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SimpleNamespace(f_frsize=1, f_blocks=1000, f_bavail=49)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    keeper = LogKeeper(folder, 1 << 60, notes.append)
    keeper.take(POD, [ends(b"one"), ends(b"two")])
    keeper.close()
    assert notes == ["the disk is low: logs of attempts on pod are not kept"]
    assert not folder.attempt(4, 1).exists()


def test_what_comes_too_fast_is_dropped_and_counted(
    folder: ExperimentFolder, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the memory of the head grows with what agents print."""
    monkeypatch.setattr(kept_logs, "MOST_WAITING_BYTES", 5)
    keeper = LogKeeper(folder, 0, notes.append)
    keeper.take(POD, [ends(b"12345"), ends(b"67890")])
    keeper.close()
    assert output(folder) == b"12345"
    assert notes == ["logs of 1 attempts came faster than they could be kept"]


# -- beside what was fetched ---------------------------------------------------------------------


def fetched(folder: ExperimentFolder, text: bytes, inode: str = "7") -> None:
    """As `trial fetch` leaves it while the trial runs."""
    into = folder.attempt(4, 1)
    into.mkdir(parents=True)
    (into / "stdout").write_bytes(text)
    Fetched("4.1", POD, files={"stdout": f"{inode}-{len(text)}-0"}).write(into)


def kept(folder: ExperimentFolder, given: wire.LogEnds) -> None:
    keep(folder.attempt(4, 1), "4.1", POD, given)


def test_an_end_joins_on_to_what_was_fetched_before(folder: ExperimentFolder) -> None:
    """Mutations: it takes its place; bytes come twice."""
    fetched(folder, b"0123456")
    kept(folder, ends(b"56789", before=5))
    assert output(folder) == b"0123456789"
    assert is_fetched(folder, ONE, "logs")
    kept(folder, ends(b"56789", before=5))
    assert output(folder) == b"0123456789", "an agent says so again"


@pytest.mark.parametrize("inode", ["7", "8"])
def test_what_was_fetched_stays_where_the_end_does_not_join_on(
    folder: ExperimentFolder, inode: str
) -> None:
    """With a gap between, or when the log was begun anew. Mutation: it is overwritten."""
    fetched(folder, b"0123", inode=inode)
    kept(folder, ends(b"89", before=8))
    assert output(folder) == b"012389"
    assert why_in_part(folder, ONE, "stdout")
    assert not is_fetched(folder, ONE, "logs")


# -- followed while the agent goes ---------------------------------------------------------------


class Agent:
    """The files of an attempt by an agent that may be gone."""

    place = POD

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.inode = "7"
        self.there = True

    def list(self, below: str = "", *, most: int) -> FileList:
        raise PassingBackendError("is not there any more", where=POD)

    def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
        if not self.there:
            raise PassingBackendError("is not there any more", where=POD)
        data = self.text[offset : offset + limit]
        return FilePiece(data, len(self.text), "", self.inode) if path == "stdout" else None

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        return 0

    def close(self) -> None:
        pass


def follow(folder: ExperimentFolder, agent: Agent, *last: wire.LogEnds) -> bytes:
    """What is shown of an attempt whose agent hands its logs in, and goes, as soon as something was
    read."""
    files = FilesElseKept(agent, files_here(folder, ONE), folder, ONE, kept_s=0.0)
    shown: list[bytes] = []

    def is_over() -> bool:
        return bool(shown)

    for chunk in log_stream.follow(files, "stdout", is_over, look_every_s=0.0):
        shown.append(chunk)
        if agent.there:
            agent.there = False
            for each in last:
                kept(folder, each)
    return b"".join(shown)


@pytest.mark.parametrize("before", [0, 3, 5])
def test_output_is_followed_past_the_end_of_the_place(
    folder: ExperimentFolder, before: int
) -> None:
    """Each trial in an allocation of its own ends so. Mutations: its last lines are missing, or
    come twice; it ends with an error."""
    whole = b"0123456789"
    assert follow(folder, Agent(whole[:5]), ends(whole[before:], before)) == whole


def test_what_came_between_is_passed_over(folder: ExperimentFolder) -> None:
    assert follow(folder, Agent(b"01234"), ends(b"89", before=8)) == b"0123489"


def test_a_log_that_was_begun_anew_is_followed_from_its_beginning(folder: ExperimentFolder) -> None:
    assert follow(folder, Agent(b"01234"), ends(b"ab", inode="8")) == b"01234ab"


def test_a_place_that_went_without_a_word_is_an_error(folder: ExperimentFolder) -> None:
    with pytest.raises(PassingBackendError, match="is not there any more"):
        follow(folder, Agent(b"01234"))


def test_one_who_comes_later_begins_with_what_is_here(folder: ExperimentFolder) -> None:
    """As the page does: it lists first. Mutation: offsets of the agent's file are taken."""
    agent = Agent(b"")
    agent.there = False
    kept(folder, ends(b"end\n", before=100))
    files = FilesElseKept(agent, files_here(folder, ONE), folder, ONE, kept_s=0.0)
    assert [each.size for each in files.list("stdout", most=9).entries] == [4]
    assert files.place == "this machine"
    assert b"".join(log_stream.follow(files, "stdout", lambda: True, taken=1)) == b"nd\n"
