"""Busy slots and why no more were: what a replay says is what a head said then."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.why import why
from dispatcher.experiments.why import NO_HEAD as NO_HEAD_NOW
from dispatcher.plots.slots import slots
from dispatcher.queries import ExperimentReader
from dispatcher.store import SqliteJournal
from dispatcher.store.replay.slots_then import NO_HEAD, slots_then
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life

COMPACTED = Path(__file__).parents[2] / "upgrade" / "store-schema-0002.sqlite.gz"


@pytest.fixture
def life(tmp_path: Path) -> Life:
    """Trial 0 runs in one of two slots, while the tuner thinks about the next ones."""
    folder = make_folder(tmp_path)
    life = Life(SqliteJournal.open(folder / "journal.sqlite"))
    life.begin()
    life.propose(0)
    life.say(e.AttemptStarted(TrialId(0), 1, 4000))
    return life


def lasts(life: Life, seconds: float) -> None:
    """Nothing happens for a while."""
    life.now += seconds - 1
    life.say(e.Tick())


def test_shares_are_those_of_the_time(life: Life) -> None:
    """Mutation: means over steps that are not as long as the others, a slot too many."""
    lasts(life, 100)
    with ExperimentReader.open(life.journal.folder) as reader:
        found = slots(reader, last=100)
        assert (found.until - found.begin, found.each_s) == (100, 1)
        assert (found.busy, found.slots) == ([1.0] * 100, [2.0] * 100)
        assert found.busy_share == pytest.approx(0.5)
        assert [(one.cause, one.share) for one in found.idle] == [
            ("TUNER_BUSY", pytest.approx(0.5))
        ]
        (reason,) = found.reasons
        assert (reason.begin, reason.end, reason.cause) == (found.begin, found.until, "TUNER_BUSY")
        assert "generate_parameters" in reason.text
        life.propose(1)
        life.say(e.AttemptStarted(TrialId(1), 1, 4001))
        lasts(life, 300)
        found = slots(reader, last=400)
        assert found.busy_share == pytest.approx((100 - 2 + 2 * 300 + 1) / 800, abs=0.01)
        assert [one.cause for one in found.reasons] == ["TUNER_BUSY", "ALL_SLOTS_BUSY"]
        assert slots(reader, last=200).idle == []


def test_each_moment_has_the_cause_that_it_had(life: Life) -> None:
    """Mutation: the state after a row stands for the time before it."""
    seen = []

    def noted(seconds: float) -> None:
        life.now += seconds
        if len(life.state.running) < life.state.settings.slots:
            seen.append((life.now - seconds / 2, why(life.state, life.now).cause.name))

    noted(30)
    life.exit(0)
    noted(40)
    life.deliver(0)
    noted(20)
    while life.state.open:
        life.propose(next(iter(life.state.open)))
    noted(50)
    life.say(e.WorkerLost(next(iter(life.state.workers)), "gone"))
    noted(60)
    life.say(e.Tick())
    with ExperimentReader.open(life.journal.folder) as reader:
        found = slots(reader)
    for at, cause in seen:
        (span,) = (one for one in found.reasons if one.begin <= at < one.end)
        assert span.cause == cause, (at, cause)
    assert len({cause for _, cause in seen}) >= 2


def test_a_time_without_a_head_is_named(life: Life) -> None:
    """Mutation: the last cause of a dead head stands for the hours until the next one."""
    lasts(life, 10)
    life.now += 600
    life.say(e.HeadStarted(2))
    lasts(life, 10)
    with ExperimentReader.open(life.journal.folder) as reader:
        found = slots(reader)
    spans = {one.cause: one.end - one.begin for one in found.reasons}
    assert spans[NO_HEAD] == pytest.approx(600, abs=2)
    assert NO_HEAD == NO_HEAD_NOW


def test_steps_are_longer_where_more_is_shown(life: Life) -> None:
    lasts(life, 40_000)
    with ExperimentReader.open(life.journal.folder) as reader:
        found = slots(reader, last=36_000)
    assert found.each_s == 10
    assert len(found.busy) == len(found.slots) == 3_600
    assert found.busy_share == pytest.approx(0.5)


def test_what_is_compacted_is_not_made_up(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    store = folder / "journal.sqlite"
    store.write_bytes(gzip.decompress(COMPACTED.read_bytes()))
    before = store.read_bytes()
    with ExperimentReader.open(folder) as reader:
        found = slots(reader, last=604_800)
    assert found.notes == ["what was before is compacted: a journal keeps it only for so long"]
    assert found.busy
    assert store.read_bytes() == before


def test_a_journal_that_is_too_long_is_not_replayed(life: Life) -> None:
    path = life.journal.folder / "journal.sqlite"
    assert slots_then(path, 0.0, life.now, 1.0, most_rows=3) is None
    assert slots_then(path, 0.0, life.now, 1.0) is not None


def test_a_store_without_rows_has_no_slots(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    SqliteJournal.open(folder / "journal.sqlite").close()
    with ExperimentReader.open(folder) as reader:
        found = slots(reader)
    assert (found.busy, found.reasons, found.busy_share) == ([], [], None)
