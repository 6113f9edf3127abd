"""The launch of a tuner that starts again: after its past is read, and beside the engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.errors import StoreError
from dispatcher.ports import Journal, Snapshot
from dispatcher.store import SqliteJournal
from dispatcher.store.compaction import Compaction
from dispatcher.store.replay import restoring
from dispatcher.store.replay.folding import read_whole_past
from dispatcher.store.replay.history import Past
from dispatcher.store.replay.restoring import RestoringTuner
from tests.unit.store.life import Life

PATIENCE_S = 120.0


class Port:
    """Notes what it is to do, and whether the file was there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: list[str] = []

    def perform(self, action: a.TunerAction) -> None:
        self.done.append(type(action).__name__)
        if isinstance(action, a.LaunchTuner):
            assert self.path.exists()

    def flush(self) -> None: ...

    def receive(self, payload: bytes) -> list[e.Event]:
        return []

    def check(self) -> list[e.Event]:
        return []

    def close(self, deadline_s: float) -> None:
        self.done.append("closed")


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    life = Life(journal)
    life.begin()
    life.whole(0)
    yield life
    journal.close()


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The past is read when this is set."""
    event = threading.Event()

    def read(journal: Journal, compaction: Compaction) -> Past:
        assert threading.current_thread() is not threading.main_thread()
        assert event.wait(PATIENCE_S)
        return read_whole_past(journal, compaction)

    monkeypatch.setattr(restoring, "read_whole_past", read)
    yield event
    event.set()


Make = Callable[[], tuple[RestoringTuner, Port]]


@pytest.fixture
def make(life: Life, tmp_path: Path) -> Make:
    def build() -> tuple[RestoringTuner, Port]:
        path = tmp_path / "restore"
        journal, port = life.journal, Port(path)
        assert isinstance(journal, SqliteJournal)
        store = tmp_path / "journal.sqlite"
        return RestoringTuner(port, journal, Compaction(journal), path, store=store), port

    return build


def end_of_reading() -> None:
    for thread in threading.enumerate():
        if thread.name == "restored-past":
            thread.join(PATIENCE_S)


def content(path: Path) -> Any:
    return msgspec.msgpack.decode(path.read_bytes())


def test_the_engine_goes_on_until_the_past_is_read(
    life: Life, make: Make, go: threading.Event
) -> None:
    tuner, port = make()
    port.path.write_bytes(b"of the start before")
    tuner.perform(a.LaunchTuner())
    assert tuner.check() == []
    assert port.done == []
    life.say(e.TrialSubmitted('{"y":1}'))  # the engine writes meanwhile
    go.set()
    end_of_reading()
    tuner.check()
    assert port.done == ["LaunchTuner"]
    assert content(port.path) == {
        "state": None,
        "calls": [
            ["generate", 0, '{"x":0}'],
            ["result", 0, '{"x":0}', "0.5"],
            ["end", 0, True, True],
        ],
    }
    tuner.check()
    assert port.done == ["LaunchTuner"], "once"


def test_a_state_of_its_own_and_the_calls_since_are_of_one_moment(
    life: Life, make: Make, go: threading.Event
) -> None:
    tuner, port = make()
    row = life.say(e.Tick())
    life.journal.save_snapshot(Snapshot(row, '{"n":1}'))
    life.whole(1)
    tuner.perform(a.LaunchTuner())
    late = life.say(e.Tick())
    life.journal.save_snapshot(Snapshot(late, '{"n":2}'))  # after that moment
    go.set()
    end_of_reading()
    tuner.check()
    told = content(port.path)
    assert told["state"] == '{"n":1}'
    assert [call[:2] for call in told["calls"]] == [["generate", 1], ["result", 1], ["end", 1]]


def test_a_past_that_cannot_be_read_ends_the_engine(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Past:
        raise StoreError("the store is damaged")

    monkeypatch.setattr(restoring, "read_whole_past", fail)
    tuner, port = make()
    tuner.perform(a.LaunchTuner())
    end_of_reading()
    with pytest.raises(StoreError, match="the store is damaged"):
        tuner.check()
    assert port.done == []


def test_a_head_that_ends_leaves_nobody_reading(
    make: Make, go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuner, port = make()
    tuner.perform(a.LaunchTuner())
    go.set()
    tuner.close(0.0)
    end_of_reading()
    assert port.done == ["closed"]
    assert [path.name for path in port.path.parent.glob("restore*.new")] == []


def test_the_first_launch_is_given_what_the_head_has_read(life: Life, tmp_path: Path) -> None:
    journal = life.journal
    assert isinstance(journal, SqliteJournal)
    compaction = Compaction(journal)
    past = read_whole_past(journal, compaction)
    path = tmp_path / "restore"
    port = Port(path)
    tuner = RestoringTuner(port, journal, compaction, path, past, store=tmp_path / "none")
    tuner.perform(a.LaunchTuner())
    assert port.done == ["LaunchTuner"]
    assert len(content(path)["calls"]) == 3
    tuner.perform(a.OpenRequest(TrialId(1)))
    assert port.done == ["LaunchTuner", "OpenRequest"]


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("states", [False, True])
def test_each_launch_is_given_all_that_there_is_by_then(
    life: Life, tmp_path: Path, given: bool, beside: bool, states: bool
) -> None:
    """The first one, the one after a crash and the one after that: with what the head had read or
    without it, beside the engine or in place, for tuners with a state of their own and without."""
    journal = life.journal
    assert isinstance(journal, SqliteJournal)
    compaction = Compaction(journal)
    first = read_whole_past(journal, compaction) if given else None
    store = tmp_path / "journal.sqlite" if beside else None
    path = tmp_path / "restore"
    port = Port(path)
    tuner = RestoringTuner(port, journal, compaction, path, first, store=store)
    told = 1  # trials that have ended
    kept, since = None, 0  # state, and trials that had ended when it was taken
    for launch in range(1, 5):
        tuner.perform(a.LaunchTuner())
        end_of_reading()
        tuner.check()
        assert port.done == ["LaunchTuner"] * launch
        calls = [[what, n] for n in range(since, told) for what in ("generate", "result", "end")]
        found = content(path)
        assert (found["state"], [call[:2] for call in found["calls"]]) == (kept, calls)
        life.whole(told)
        told += 1
        if states and launch % 2:
            kept, since = f'{{"trials":{told}}}', told
            journal.save_snapshot(Snapshot(journal.last, kept))
            life.whole(told)
            told += 1
