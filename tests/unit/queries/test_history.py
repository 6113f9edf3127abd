"""A search as it was is what the core knew at that moment."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dispatcher import queries
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import AttemptState, EndReason, Trial, TrialState
from dispatcher.ports import Snapshot
from dispatcher.queries import OptimizeMode
from dispatcher.store.compaction import Compaction
from dispatcher.store.journal import SqliteJournal
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import HOST, Life

#: The states of the core, as rows can tell them apart.
SEEN = {
    TrialState.OPEN: "open", TrialState.BLOCKED: "open", TrialState.PARKED: "open",
    TrialState.HELD: "queued", TrialState.QUEUED: "queued", TrialState.BACKOFF: "queued",
    TrialState.RUNNING: "running", TrialState.DELIVERING: "ended", TrialState.ENDED: "ended",
}  # fmt: skip


def seen(trial: Trial) -> str:
    """The state as rows can tell it: one that was placed runs from its first report on."""
    if trial.state is TrialState.RUNNING and trial.attempt_state is AttemptState.STARTING:
        return "queued"
    return SEEN[trial.state]


class WatchedLife(Life):
    """A life of which each moment is kept: the time, and the state of each trial."""

    def say(self, *events: e.Event, durable: bool = True) -> int:
        if not hasattr(self, "seen"):
            self.seen: list[tuple[float, dict[int, str]]] = []
        row = super().say(*events, durable=durable)
        if len(events) == 1:  # of several at once the moments between are not looked at
            states = {int(one.id): seen(one) for one in self.state.trials.values()}
            self.seen.append((self.now, states))
        return row


def lived(folder: Path, seed: int, trials: int = 30) -> WatchedLife:
    """Waits for parents, failures with another attempt, losses of the worker, a trial by hand."""
    draw = random.Random(seed)
    life = WatchedLife(SqliteJournal.open(folder / "journal.sqlite"), trial_retries=1)
    life.begin()
    done: list[int] = []
    for _ in range(trials):
        waiting = [t for t, one in life.state.trials.items() if one.state is TrialState.OPEN]
        if not waiting:
            break
        trial = int(min(waiting))
        parent = draw.choice(done) if done and draw.random() < 0.7 else None
        life.propose(trial, parent)
        running = life.state.trials[TrialId(trial)]
        life.now += draw.uniform(0, 9)
        life.say(e.AttemptStarted(TrialId(trial), 1, 4000 + trial))
        way = draw.random()
        if way < 0.2:
            life.exit(trial, 1, EndReason.FAILED, text="once more")
        elif way < 0.4:
            life.say(e.WorkerLost(HOST, "gone"))
            life.now += draw.uniform(1, 5)
            life.say(e.WorkerJoined(HOST, 2))
        else:
            life.say(e.FinalReported(TrialId(trial), 1, 1, f"{draw.random():.3f}"))
            life.exit(trial, 1)
        for _ in range(30):
            if running.state in (TrialState.RUNNING, TrialState.DELIVERING, TrialState.ENDED):
                break
            life.now += 60.0
            life.say(e.Tick())
        if running.state is TrialState.RUNNING:
            life.say(e.AttemptStarted(TrialId(trial), running.attempt, 5000 + trial))
            life.say(e.FinalReported(TrialId(trial), running.attempt, 1, f"{draw.random():.3f}"))
            life.exit(trial, running.attempt)
        life.deliver(trial)
        done.append(trial)
    life.say(e.TrialSubmitted('{"x": 1}'))
    return life


def moment(folder: Path, time: float) -> queries.Moment:
    with queries.ExperimentReader.open(folder) as reader:
        return queries.moment_of(queries.history(reader), time, OptimizeMode.MAXIMIZE)


@pytest.mark.parametrize("seed", range(5))
def test_each_moment_is_what_the_core_knew_then(tmp_path: Path, seed: int) -> None:
    """Mutation: an attempt that was lost runs on, a trial by hand is in the tuner, `<` for `<=`."""
    folder = make_folder(tmp_path)
    life = lived(folder, seed)
    life.journal.close()
    with queries.ExperimentReader.open(folder) as reader:
        lives = queries.history(reader)
    assert lives.notes == []
    compared = 0
    for time, states in life.seen:
        then = queries.moment_of(lives, time, OptimizeMode.MAXIMIZE)
        assert {one.trial: one.state for one in then.trials} == states, time
        assert {state: many for state, many in then.states.items() if many} == Counter(
            states.values()
        )
        compared += len(states)
    assert compared > 1_000


def test_values_and_the_best_are_those_of_then(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    life = WatchedLife(SqliteJournal.open(folder / "journal.sqlite"))
    life.begin()
    for trial, value in ((0, "0.5"), (1, "0.9"), (2, "0.7")):
        life.whole(trial, None, value)
    life.journal.close()
    whole = moment(folder, life.now)
    assert (whole.best, whole.outcomes) == (1, {"succeeded": 3})
    with queries.ExperimentReader.open(folder) as reader:
        ended = {one.trial: one.ended for one in queries.history(reader).trials}
    first, second = ended[0], ended[1]
    assert first is not None
    assert second is not None
    then = moment(folder, second - 0.5)
    assert then.best == 0
    told: dict[int, Any] = {one.trial: (one.outcome, one.value) for one in then.trials}
    assert told[0] == ("succeeded", 0.5)
    assert told[1] == (None, None)
    before = moment(folder, first - 10_000)
    assert (before.trials, before.best, sum(before.states.values())) == ((), None, 0)


def test_what_a_compaction_took_is_said(tmp_path: Path) -> None:
    """The end of a lost attempt stands in the journal alone; all else stays exact."""
    folder = make_folder(tmp_path)
    life = lived(folder, 3)
    with queries.ExperimentReader.open(folder) as reader:
        before = queries.history(reader)
    fold(life)
    life.journal.close()
    with queries.ExperimentReader.open(folder) as reader:
        after = queries.history(reader)
        assert not reader.rows("SELECT 1 FROM journal WHERE kind = 'WorkerLost'")
    lost = [
        one.trial for one, other in zip(before.trials, after.trials, strict=True) if one != other
    ]
    assert 0 < len(lost) == after.unseen
    assert str(after.unseen) in after.notes[0]
    for time, states in life.seen:
        then = {one.trial: one.state for one in queries.moment_of(
            after, time, OptimizeMode.MAXIMIZE).trials}  # fmt: skip
        assert {t: s for t, s in then.items() if t not in lost} == {
            t: s for t, s in states.items() if t not in lost
        }


def fold(life: Life) -> None:
    """Fold all that is past, as the engine does."""
    journal = life.journal
    assert isinstance(journal, SqliteJournal)
    journal.save_snapshot(Snapshot(journal.last, "{}"))
    compaction = Compaction(journal, rows_between=1)
    compaction.offer(life.state, journal.last)
    while compaction.tidy():
        pass
