"""What trials have reported, laid down for a tuner host that asks, without the engine's waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.errors import StoreError
from dispatcher.ports import AssessorInput
from dispatcher.store import SqliteJournal
from dispatcher.store.replay import showing
from dispatcher.store.replay.showing import Assessed, ShownFile
from tests.unit.store.life import Life

PATIENCE_S = 120.0


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    """Trial 0 is over; trial 1 has lost an attempt, and reports."""
    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    life = Life(journal)
    life.begin()
    life.whole(0)
    life.propose(1)
    life.say(e.AttemptStarted(TrialId(1), 1, 7), e.MetricReported(TrialId(1), 1, 4, "0.5"))
    yield life
    journal.close()


PAST = [
    AssessorInput(0, "0.1", 1, 1),
    AssessorInput(0, "0.2", 1, 2),
    AssessorInput(0, None, success=True),
    AssessorInput(1, "0.5", 1, 4),
]


class Slow(Assessed):
    """Reads when it is let to, and then fails if it is told to."""

    go = threading.Event()
    error: StoreError | None = None

    def rows(self, unanswered_since: float) -> Iterator[AssessorInput]:
        assert threading.current_thread() is not threading.main_thread()
        assert self.go.wait(PATIENCE_S)
        if self.error is not None:
            raise self.error
        yield from super().rows(unanswered_since)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Slow]]:
    monkeypatch.setattr(showing, "Assessed", Slow)
    monkeypatch.setattr(Slow, "go", threading.Event())
    monkeypatch.setattr(Slow, "error", None)
    yield Slow
    Slow.go.set()


def end_of_writing() -> None:
    for thread in threading.enumerate():
        if thread.name == "shown-past":
            thread.join(PATIENCE_S)


def read(path: Path) -> list[AssessorInput]:
    return [
        msgspec.json.decode(line, type=AssessorInput) for line in path.read_bytes().splitlines()
    ]


def test_it_is_as_of_the_moment_when_it_was_asked_for(
    life: Life, tmp_path: Path, slow: type[Slow]
) -> None:
    file = ShownFile(tmp_path / "journal.sqlite", tmp_path / "shown")
    file.write()  # returns, although nothing can be read yet
    assert not file.path.exists()
    life.say(e.MetricReported(TrialId(1), 1, 5, "0.75"))  # is told as it comes
    slow.go.set()
    end_of_writing()
    assert read(file.path) == PAST
    file.check()
    file.forget()
    assert [path.name for path in tmp_path.glob("shown*")] == []


def test_what_was_reported_while_no_process_was_there_is_not_answered_yet(
    life: Life, tmp_path: Path
) -> None:
    file = ShownFile(tmp_path / "journal.sqlite", tmp_path / "shown", lambda: life.now)
    for seq in (5, 7):
        file.forget()  # the process ends
        life.say(e.MetricReported(TrialId(1), 1, seq, "0.75"))
        file.forget()  # another begins
        life.say(e.MetricReported(TrialId(1), 1, seq + 1, "0.75"))
        file.write()
        end_of_writing()
        seen = read(file.path)
        assert [one.seq for one in seen if not one.answered] == [seq, seq + 1]
    assert [one.seq for one in seen if one.answered and one.trial == 1] == [4, 5, 6]


def test_it_is_written_piece_by_piece(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(showing, "MOST_LINES", 2)
    most = 0
    written: list[int] = []

    class Watched(Assessed):
        def rows(self, unanswered_since: float) -> Iterator[AssessorInput]:
            nonlocal most
            for number, row in enumerate(super().rows(unanswered_since)):
                most = max(most, number + 1 - sum(written))
                yield row

    def encode(row: AssessorInput) -> bytes:
        written.append(1)
        return msgspec.json.encode(row)

    monkeypatch.setattr(showing, "Assessed", Watched)
    monkeypatch.setattr(showing, "msgspec", SimpleNamespace(json=SimpleNamespace(encode=encode)))
    file = ShownFile(tmp_path / "journal.sqlite", tmp_path / "shown")
    file.write()
    end_of_writing()
    assert len(file.path.read_bytes().splitlines()) == len(PAST)
    assert most == 1, "rows are read as they are written, and not gathered"


def test_for_a_process_that_is_gone_nothing_appears(
    life: Life, tmp_path: Path, slow: type[Slow]
) -> None:
    file = ShownFile(tmp_path / "journal.sqlite", tmp_path / "shown")
    file.write()
    slow.error = StoreError("interrupted")
    file.forget()
    slow.go.set()
    end_of_writing()
    file.check()
    assert list(tmp_path.glob("shown*")) == []


def test_what_a_killed_head_has_left_goes(life: Life, tmp_path: Path) -> None:
    (tmp_path / "shown").write_bytes(b"[9,null,0,0,true]\n")
    (tmp_path / "shown.3").write_bytes(b"[9,")
    file = ShownFile(tmp_path / "journal.sqlite", tmp_path / "shown")
    file.forget()
    assert list(tmp_path.glob("shown*")) == []


def test_a_store_that_cannot_be_read_is_said_to_the_engine(
    life: Life, tmp_path: Path, slow: type[Slow]
) -> None:
    slow.error = StoreError("the store is damaged")
    file = ShownFile(tmp_path / "journal.sqlite", tmp_path / "shown")
    file.write()
    file.check()
    slow.go.set()
    end_of_writing()
    with pytest.raises(StoreError, match="the store is damaged"):
        file.check()
    assert list(tmp_path.glob("shown*")) == []
