"""Floors do what they declare, with real processes, and declare what the product does."""

import sqlite3

import pytest

from benchmarks import bare_head, cost, floors
from benchmarks.dispatch import experiment

ROUNDS = [
    pytest.param(floors.IN_PROCESS, id="in-process"),
    pytest.param(floors.FORKED, id="forked"),
    pytest.param(floors.FRESH, id="fresh"),
    pytest.param(floors.with_metrics(floors.METRICS), id="metrics"),
]


@pytest.fixture
def commits(monkeypatch):
    """What the bare head committed, in order."""
    kept = []
    commit = bare_head.Store.commit

    def noted(store, journal, replaced, changed, metrics=0, *, durable=True):
        before = store._raw.total_changes
        commit(store, journal, replaced, changed, metrics, durable=durable)
        synchronous = store._raw.execute("PRAGMA synchronous").fetchone()[0]
        kept.append((store._raw.total_changes - before, synchronous == 2))

    monkeypatch.setattr(bare_head.Store, "commit", noted)
    return kept


@pytest.mark.parametrize("one", ROUNDS)
def test_each_turn_of_a_round_is_a_commit_of_its_rows(one, commits):
    words = [turn.received for turn in one.turns if turn.peer == "tuner"]

    bare_head.rounds(
        turns=[floors.told(turn) for turn in one.turns],
        count=2,
        warm=1,
        word_bytes=words[0] // 2,
    )

    declared = [(sum(vars(turn.rows).values()), turn.durable) for turn in one.turns]
    assert commits == 3 * declared


def test_a_commit_waits_for_the_disk_in_a_write_ahead_log(tmp_path):
    store = bare_head.Store(tmp_path / "store.sqlite")
    store.commit(1, 1, 1)
    with sqlite3.connect(tmp_path / "store.sqlite") as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert other.execute("SELECT count(*) FROM journal").fetchone() == (1,)
    other.close()
    store.close()


def test_every_one_of_a_crowd_is_let_go_and_metrics_are_kept_meanwhile(commits):
    result = bare_head.crowd(count=200, metrics_every_s=0.001)

    assert 0 < result["first_s"] <= result["last_s"]
    assert result["waits_s"]
    assert all(durable for _, durable in commits)


def test_pairs_are_measured_one_by_one():
    latencies = bare_head.pairs(count=5, pause_s=0.0)["latencies_s"]

    assert len(latencies) == 5
    assert min(latencies) > 0


def test_the_product_commits_the_rows_of_its_floor():
    result = experiment(trials=120, reuse="inProcess", marks=[20, 120], count=True)

    counted, floor = cost.counts(result, 20), floors.IN_PROCESS.each()

    # Facts are in rows of their own, in whatever company they are committed.
    assert counted["journal rows"] == pytest.approx(floor["journal rows"], rel=0.05)
    assert 7 <= counted["other rows"] <= 13
    assert 0 < counted["commits"] <= 6
    assert 0 < counted["frames in"] <= 6
