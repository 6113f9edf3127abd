"""Which slot had which attempt: as few lanes as hold them, and the GPUs from the journal."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.core.resources import Device, Needs, Offer
from dispatcher.errors import UserError
from dispatcher.plots import timeline as module
from dispatcher.plots.timeline import Bar, lanes_of, timeline
from dispatcher.queries import ExperimentReader
from dispatcher.store import SqliteJournal
from dispatcher.store.replay.devices import devices_held
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import HOST, Life


def bar(start: float, end: float | None, worker: str = "w") -> Bar:
    return Bar(0, 1, worker, start, end, "succeeded")


def test_lanes_are_as_few_as_run_at_once() -> None:
    bars = [bar(0, 10), bar(1, 3), bar(3, 5), bar(4, None), bar(0, 2, "v")]
    bars.sort(key=lambda one: one.start)
    placed, lanes = lanes_of(bars, until=20)
    assert [(one.worker, one.slot, one.busy_s) for one in lanes] == [
        ("v", 0, 2.0), ("w", 0, 10.0), ("w", 1, 4.0), ("w", 2, 16.0),
    ]  # fmt: skip
    assert [lanes[lane].worker for lane in placed] == [one.worker for one in bars]


def test_no_two_bars_of_a_lane_overlap() -> None:
    draw = random.Random(7)
    starts = sorted(draw.uniform(0, 100) for _ in range(400))
    bars = [bar(one, one + draw.expovariate(0.2), draw.choice("ab")) for one in starts]
    placed, lanes = lanes_of(bars, until=200)
    ends: dict[int, float] = {}
    for one, lane in zip(bars, placed, strict=True):
        assert ends.get(lane, 0.0) <= one.start
        assert one.end is not None
        ends[lane] = one.end
    for worker in "ab":
        there = [one for one in bars if one.worker == worker]
        most = max(
            sum(other.start <= one.start < (other.end or 0) for other in there) for one in there
        )
        assert sum(lane.worker == worker for lane in lanes) == most


@pytest.fixture
def life(tmp_path: Path) -> Life:
    """Trial 0 is over, 1 was tried twice and failed, 2 runs again, and was lost with its worker."""
    folder = make_folder(tmp_path)
    life = Life(SqliteJournal.open(folder / "journal.sqlite"), slots=4, trial_retries=1)
    life.begin()
    life.whole(0)
    life.propose(1)
    for attempt in (1, 2):
        life.now += 600
        life.say(e.AttemptStarted(TrialId(1), attempt, 4001))
        life.exit(1, attempt, EndReason.FAILED, text="no")
        life.now += 600
        life.say(e.Tick())
    life.propose(2)
    life.say(e.AttemptStarted(TrialId(2), 1, 4002))
    life.say(e.WorkerLost(HOST, "gone"))
    life.now += 600
    life.say(e.WorkerJoined(HOST, 2))
    life.say(e.Tick())
    life.say(e.AttemptStarted(TrialId(2), 2, 4003))
    return life


def test_attempts_become_bars(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = life.journal.folder
    with ExperimentReader.open(folder) as reader:
        found = timeline(reader)
        attempts = zip(found.trials, found.attempts, strict=True)
        told = dict(zip(attempts, found.outcomes, strict=True))
        assert told[0, 1] == "succeeded"
        assert (told[1, 1], told[1, 2]) == ("failed", "failed")
        assert (told[2, 1], told[2, 2]) == ("lost", "running")
        assert found.ends[-1] is None
        assert None not in found.ends[:-1]
        assert any("was not seen" in note for note in found.notes)
        assert found.begin == min(found.starts)
        assert found.until >= max(found.starts)
        assert (found.gpus, found.earlier) == ([], 0)
        assert {one.worker for one in found.lanes} == {"local"}
        assert timeline(reader, worker="local").trials == found.trials
        monkeypatch.setattr(module, "MOST_BARS", 2)
        cut = timeline(reader)
        assert (len(cut.trials), cut.earlier) == (2, len(found.trials) - 2)
        assert cut.trials[-1] == 2
        assert cut.notes[0] == f"{cut.earlier} earlier attempts are left out"


def test_a_worker_that_there_is_not(life: Life, tmp_path: Path) -> None:
    """Mutation: the picture says that no attempt has started."""
    with ExperimentReader.open(life.journal.folder) as reader:
        with pytest.raises(UserError, match="no attempt ran on a worker 'nope'") as refused:
            timeline(reader, worker="nope")
        assert refused.value.hint == "there are: local"
    folder = make_folder(tmp_path / "fresh")
    SqliteJournal.open(folder / "journal.sqlite").close()
    with ExperimentReader.open(folder) as reader:
        assert timeline(reader, worker="nope").trials == [], "none has started: it may come"


def test_gpus_are_those_that_attempts_held(tmp_path: Path) -> None:
    """Mutation: devices of another attempt, or none."""
    folder = make_folder(tmp_path, trialGpuNumber=1)
    life = Life(SqliteJournal.open(folder / "journal.sqlite"), needs=Needs(gpus=1.0))
    offer = Offer(devices=(Device("GPU-a", 0), Device("GPU-b", 1)))
    life.say(e.WorkerJoined(HOST, 2, offer=offer))
    life.say(e.TunerHostReady())
    life.propose(0)
    life.propose(1)
    held = {}
    for trial in (0, 1):
        life.say(e.AttemptStarted(TrialId(trial), 1, 4000 + trial))
        held[trial] = list(life.state.trials[TrialId(trial)].devices)
    assert sorted(held.values()) == [["GPU-a"], ["GPU-b"]]
    life.exit(0, 1, EndReason.FINISHED)
    with ExperimentReader.open(folder) as reader:
        found = timeline(reader)
        assert dict(zip(found.trials, found.gpus, strict=True)) == held
    assert devices_held(folder / "journal.sqlite", most_rows=3) is None
