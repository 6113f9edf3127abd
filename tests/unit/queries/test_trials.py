"""Lists of trials, one trial, the best: as stored, whatever the head is doing."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.errors import ExperimentNotFound, StoreError, UserError
from dispatcher.queries import (
    ExperimentReader,
    OptimizeMode,
    TrialFilter,
    TrialNotFound,
    TrialSort,
    best,
    experiment_summary,
    lineage,
    list_trials,
    metrics,
    sort_key,
    trial,
)
from dispatcher.store import SqliteJournal
from tests.unit.queries.evolution import evolve, make_folder
from tests.unit.store.life import HOST, Life


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExperimentReader]:
    folder = make_folder(tmp_path_factory.mktemp("base"))
    evolve(folder, 40)
    with ExperimentReader.open(folder) as opened:
        yield opened


def test_the_best_come_first_by_value_and_those_without_last(reader: ExperimentReader) -> None:
    values = [t.value for t in list_trials(reader, sort=TrialSort.VALUE)]
    numbers = [v for v in values if v is not None]
    assert numbers == sorted(numbers, reverse=True)
    assert values[: len(numbers)] == numbers
    assert None in values


def test_filters(reader: ExperimentReader) -> None:
    failed = list_trials(reader, TrialFilter(outcomes=("failed",)))
    assert [t.id for t in failed] == [11, 23, 35]
    assert failed[0].error == "Traceback: out of luck"
    assert all(t.state == "open" for t in list_trials(reader, TrialFilter(live=True)))
    assert not list_trials(reader, TrialFilter(states=("running", "queued")))
    child = list_trials(reader, TrialFilter(with_value=True))[-1]
    assert child.parent is not None
    assert child.id in [t.id for t in list_trials(reader, TrialFilter(parent=child.parent))]
    assert len(list_trials(reader, limit=7)) == 7
    shown = list_trials(reader, TrialFilter(shown=("failed", "open")))
    assert {t.outcome or t.state for t in shown} == {"failed", "open"}
    assert list_trials(reader, TrialFilter(by_hand=True)) == []


@pytest.mark.parametrize("sort", list(TrialSort))
def test_each_sort_goes_both_ways(reader: ExperimentReader, sort: TrialSort) -> None:
    up = [
        t.id for t in list_trials(reader, TrialFilter(with_value=True), sort=sort, descending=False)
    ]
    down = [
        t.id for t in list_trials(reader, TrialFilter(with_value=True), sort=sort, descending=True)
    ]
    assert sorted(up) == sorted(down)


def test_best(reader: ExperimentReader) -> None:
    top = best(reader, 3)
    everything = [t.value for t in list_trials(reader) if t.value is not None]
    assert [t.value for t in top] == sorted(everything, reverse=True)[:3]
    (worst,) = best(reader, 1, OptimizeMode.MINIMIZE)
    assert worst.value == min(everything)


def test_a_value_that_the_tuner_was_not_told_is_not_the_best(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal)
    life.begin()
    life.propose(0)
    life.say(e.AttemptStarted(TrialId(0), 1), e.FinalReported(TrialId(0), 1, 1, "0.9"))
    with ExperimentReader.open(folder) as reader:
        assert list_trials(reader)[0].value == 0.9
        assert best(reader) == []
        life.exit(0)
        assert [t.id for t in best(reader)] == [0]
    journal.close()


def test_all_about_one_trial(reader: ExperimentReader) -> None:
    detail = trial(reader, 5)
    assert detail.trial.id == 5
    assert detail.trial.parameters["save_path"] == "t/5"
    assert [(a.number, a.end_reason, a.worker) for a in detail.attempts] == [
        (1, "finished", "local")
    ]
    assert [(m.seq, m.final, m.number) for m in detail.metrics][:2] == [
        (1, False, 0.1),
        (2, False, 0.2),
    ]
    assert detail.metrics[-1].final
    assert list(detail.children) == [t.id for t in list_trials(reader, TrialFilter(parent=5))]
    assert detail.to_json()["trial"]["gate"] == "open"


def test_metrics_can_be_followed(reader: ExperimentReader) -> None:
    assert [m.seq for m in metrics(reader, 5, after=1)] == [2, 3]
    assert metrics(reader, 5, attempt=2) == []


def test_an_attempt_nobody_saw_end_is_lost(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal)
    life.begin()
    life.propose(0)
    life.say(e.AttemptStarted(TrialId(0), 1))
    with ExperimentReader.open(folder) as reader:
        assert trial(reader, 0).attempts[0].end_reason is None
        life.say(e.WorkerLost("local", "gone"))  # type: ignore[arg-type]
        assert trial(reader, 0).attempts[0].end_reason == "lost"
        assert trial(reader, 0).attempts[0].text == "gone"
    journal.close()


def test_an_attempt_that_ended_with_its_worker_names_the_reason_of_that_very_loss(
    tmp_path: Path,
) -> None:
    """Mutations: the newest loss of the worker is shown for all; that of another worker; that of a
    time before the attempt."""
    folder = make_folder(tmp_path)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal, lost_retries=5)
    life.begin()
    life.say(e.WorkerLost(HOST, "before"), e.WorkerJoined(HOST, 2))
    life.propose(0)
    life.now += 3600
    life.say(e.Tick())
    for attempt in (1, 2):
        life.say(e.AttemptStarted(TrialId(0), attempt, 4000 + attempt))
        life.say(e.WorkerLost(HOST, f"preempted by {attempt}"))
        life.now += 3600
        life.say(e.WorkerJoined(HOST, 2), e.Tick())
    life.run(0, attempt=3)
    life.say(e.WorkerLost(HOST, "afterwards"))
    with ExperimentReader.open(folder) as reader:
        texts = [each.text for each in trial(reader, 0).attempts]
    journal.close()
    assert texts[:2] == ["preempted by 1", "preempted by 2"]
    assert texts[2] != "afterwards"


@pytest.mark.parametrize("seen", [False, True], ids=["with its host", "as its agent saw"])
def test_one_attempt_of_a_trial_runs_and_the_others_are_over(tmp_path: Path, seen: bool) -> None:
    """Mutation: of a trial that runs, each attempt without an end is shown as running."""
    folder = make_folder(tmp_path)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal, lost_retries=2)
    life.begin()
    life.propose(0)
    with ExperimentReader.open(folder) as reader:

        def shown() -> list[tuple[int, str | None, bool]]:
            detail = trial(reader, 0)
            of_json = [each["end_reason"] for each in detail.to_json()["attempts"]]
            assert of_json == [each.end_reason for each in detail.attempts]
            return [(each.number, each.end_reason, bool(each.pid)) for each in detail.attempts]

        for attempt in (1, 2):
            life.say(e.AttemptStarted(TrialId(0), attempt, 4000 + attempt))
            over = [(number, "lost", True) for number in range(1, attempt)]
            assert shown() == [*over, (attempt, None, True)]
            if seen:
                life.exit(0, attempt, EndReason.LOST)
            else:
                life.say(e.WorkerLost(HOST, "gone"))
            over.append((attempt, "lost", True))
            assert shown() == over, "while it waits for its next attempt"
            life.now += 3600
            life.say(e.WorkerJoined(HOST, 2), e.Tick())
            assert (trial(reader, 0).trial.state, trial(reader, 0).trial.attempt) == (
                "running",
                attempt + 1,
            )
            assert shown() == over, "the next one has not begun to run"
        life.run(0, attempt=3)
        assert shown() == [*over, (3, "finished", True)]
    journal.close()


def test_a_trial_that_is_not_there(reader: ExperimentReader) -> None:
    with pytest.raises(TrialNotFound) as caught:
        trial(reader, 999)
    assert "numbered 0 to 41" in caught.value.hint


def test_a_misspelt_sort_names_the_nearest(reader: ExperimentReader) -> None:
    with pytest.raises(UserError) as caught:
        sort_key(reader, "vlaue")
    assert "'value'" in caught.value.hint


def test_a_folder_without_an_experiment(tmp_path: Path) -> None:
    with pytest.raises(ExperimentNotFound):
        ExperimentReader.open(tmp_path)


def test_a_store_of_another_version_is_not_misread(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    evolve(folder, 1)
    connection = sqlite3.connect(folder / "journal.sqlite")
    connection.execute("UPDATE schema_version SET version_num = '0999'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="0999") as caught:
        ExperimentReader.open(folder)
    assert caught.value.hint == "upgrade bequeath"


def test_readers_know_the_schema_that_the_store_writes() -> None:
    from dispatcher.queries.reader import SCHEMAS
    from dispatcher.store.schema import SCHEMA_VERSION

    assert max(SCHEMAS) == SCHEMA_VERSION


def test_a_reader_cannot_write(reader: ExperimentReader) -> None:
    with pytest.raises(StoreError, match="readonly"):
        reader.rows("DELETE FROM trials")


def test_ten_thousand_trials_are_listed_at_once(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    evolve(folder, 1)
    connection = sqlite3.connect(folder / "journal.sqlite")
    names = [row[1] for row in connection.execute("PRAGMA table_info(trials)") if row[1] != "id"]
    connection.execute(
        f"INSERT INTO trials (id, {', '.join(names)}) "
        f"WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 10999) "
        f"SELECT i, {', '.join(names)} FROM n, trials WHERE id = 0"
    )
    connection.commit()
    connection.close()
    with ExperimentReader.open(folder) as reader:
        begun = time.process_time()
        assert len(list_trials(reader)) > 10_000
        # Far above what it takes (0.2 s), far below what a query a trial would take.
        assert time.process_time() - begun < 5


def test_answers_are_short_in_a_notebook(reader: ExperimentReader) -> None:
    (leader,) = best(reader, 1)
    assert repr(leader).startswith(f"<Trial {leader.id} succeeded, value 0.9")
    detail = repr(trial(reader, leader.id))
    assert detail.startswith(repr(leader)[:-1])
    assert "attempts: 1" in detail
    summary = repr(experiment_summary(reader))
    assert summary.startswith("<digits-abc123 created; 40 trials over, best 0.9")
    assert "trials in" in repr(lineage(reader))
    for text in (repr(leader), detail, summary, repr(lineage(reader))):
        assert len(text) < 160
