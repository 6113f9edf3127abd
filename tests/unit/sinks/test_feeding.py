"""Each fact exactly once: what ends a feeding early, and what the next one makes of it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from dispatcher.experiment import sink_kinds
from dispatcher.folders.ownership import NotOurs
from dispatcher.ports import Snapshot
from dispatcher.queries import ExperimentReader
from dispatcher.sinks import feeding as feeding_module
from dispatcher.sinks.cursor import Cursor, CursorFile, LiveRun, SinkBusy
from dispatcher.sinks.feeding import Feeding
from dispatcher.sinks.follow import TrialFollower
from dispatcher.sinks.tensorboard.kind import TensorBoardConfig
from dispatcher.store import SqliteJournal
from dispatcher.store.compaction import Compaction
from tests.support.fed import (
    FedLife,
    RecordingConfig,
    RecordingKind,
    bytes_below,
    fill,
    journal_of,
    new_folder,
)


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> RecordingKind:
    one = RecordingKind()
    monkeypatch.setattr(feeding_module, "kind_of_section", lambda section: one)
    return one


def feed(folder: Path, keep: int | None = None) -> None:
    with Feeding(folder, RecordingConfig(keep=keep)) as feeding:
        while feeding.step():
            pass
        feeding.finish("completed")


def compacted(journal: SqliteJournal, life: FedLife) -> None:
    """As the engine does it, beside which the tuner has just kept its state."""
    journal.save_snapshot(Snapshot(journal.last, "{}"))
    made = Compaction(journal, rows_between=1)
    made.offer(life.state, journal.last)
    while made.tidy():
        pass


def expected(folder: Path) -> dict[int, tuple[int, tuple[int, ...], str]]:
    """What the store holds, by plain SQL."""
    with ExperimentReader.open(folder) as reader:
        found = {}
        for row in reader.rows("SELECT * FROM trials WHERE attempt > 0"):
            seqs = reader.rows(
                "SELECT seq FROM metrics WHERE trial = ? AND attempt = ? AND counted AND NOT final "
                "ORDER BY seq",
                (row["id"], row["attempt"]),
            )
            outcome = row["outcome"] if row["state"] == "ended" else ""
            found[row["id"]] = (row["attempt"], tuple(s["seq"] for s in seqs), outcome or "")
        return found


def test_what_is_in_the_store_is_given_once(tmp_path: Path, kind: RecordingKind) -> None:
    folder = new_folder(tmp_path)
    fill(folder, 30, 20)
    feed(folder)
    assert kind.plain() == expected(folder)
    assert {outcome for _, _, outcome in kind.plain().values()} == {"succeeded"}
    assert sorted(kind.ends) == list(range(1, 31))
    feed(folder)
    assert len(kind.ends) == 30, "nothing comes twice"
    assert kind.closed == ["completed", "completed"]


def test_a_store_that_grows_is_followed_and_failures_lose_nothing(
    tmp_path: Path, kind: RecordingKind
) -> None:
    """Mutation: a cursor that is written before the tracker has it all."""
    folder = new_folder(tmp_path)
    kind.dice = random.Random(5)
    dice = random.Random(7)
    failures = 0
    with journal_of(folder) as journal:
        life = FedLife(journal)
        feeding: Feeding | None = None
        for _ in life.some(range(1, 41), 20):
            if dice.random() < 0.3:
                continue
            try:
                feeding = feeding or Feeding(folder, RecordingConfig())
                feeding.step()
            except OSError:
                failures += 1
                assert feeding is not None
                feeding.__exit__(None, None, None)
                feeding = None
            if dice.random() < 0.05 and feeding is not None:
                feeding.__exit__(None, None, None)
                feeding = None
        if feeding is not None:
            feeding.__exit__(None, None, None)
    assert failures > 10
    kind.dice = None
    feed(folder)
    assert kind.plain() == expected(folder)


def test_a_superseded_attempt_counts_nothing(tmp_path: Path, kind: RecordingKind) -> None:
    folder = new_folder(tmp_path)
    with journal_of(folder) as journal:
        life = FedLife(journal)
        life.propose(1, None, life.parameters(1))
        life.start(1)
        life.metrics(1, range(1, 9))
        with Feeding(folder, RecordingConfig()) as feeding:
            feeding.step()
            assert kind.plain() == {1: (1, tuple(range(1, 9)), "")}
            life.fail(1)
            life.start(1, 2)
            life.metrics(1, [9], attempt=1)  # late: not counted
            life.metrics(1, [1, 2], attempt=2)
            feeding.step()
            assert kind.plain() == {1: (2, (1, 2), "")}
            life.finish(1, 3, 2)
            feeding.step()
    assert kind.plain() == {1: (2, (1, 2), "succeeded")}


def test_generations_are_counted_along_the_line(tmp_path: Path, kind: RecordingKind) -> None:
    folder = new_folder(tmp_path)
    fill(folder, 20, 1)
    feed(folder)
    generations = {trial: one["run"].generation for trial, one in kind.runs.items()}
    assert generations == {trial: (trial - 1) // 3 for trial in range(1, 21)}
    with ExperimentReader.open(folder) as reader:
        (late,) = TrialFollower(reader).of([19])  # whose line nobody has asked for
    assert late.run.generation == 6


def test_compaction_under_a_sink_that_lags_loses_nothing(
    tmp_path: Path, kind: RecordingKind
) -> None:
    """Mutation: a sink that reads ends from rows of the journal."""
    folder = new_folder(tmp_path)
    with journal_of(folder) as journal:
        life = FedLife(journal)
        steps = life.some(range(1, 31), 10)
        for _ in range(20):
            next(steps)
        with Feeding(folder, RecordingConfig()) as feeding:
            feeding.step()
            for _ in steps:
                pass
            before = journal.query("SELECT count(*) FROM journal")[0][0]
            compacted(journal, life)
            after = journal.query("SELECT count(*) FROM journal")[0][0]
            assert after < before / 2, "the journal was compacted"
            while feeding.step():
                pass
    assert kind.plain() == expected(folder)
    assert len(kind.runs) == 30


def test_a_store_that_was_replaced_is_taken_anew(tmp_path: Path, kind: RecordingKind) -> None:
    """A power cut took what a sink has seen: another lead begins below it."""
    folder = new_folder(tmp_path)
    fill(folder, 4, 5)
    feed(folder)
    for path in folder.glob("journal.sqlite*"):
        path.unlink()
    with journal_of(folder, epoch=2) as journal:
        life = FedLife(journal)
        for _ in life.some(range(1, 3), 3):
            pass
    kind.runs.clear()
    feed(folder)
    assert kind.plain() == expected(folder)
    assert kind.memos[-1] is None


def test_only_the_best_are_kept(tmp_path: Path, kind: RecordingKind) -> None:
    folder = new_folder(tmp_path)
    fill(folder, 25, 2)  # the value falls with the number
    feed(folder, keep=4)
    assert sorted(kind.runs) == [1, 2, 3, 4]


def test_one_process_feeds_a_sink(tmp_path: Path, kind: RecordingKind) -> None:
    folder = new_folder(tmp_path)
    fill(folder, 1, 1)
    with Feeding(folder, RecordingConfig()), pytest.raises(SinkBusy, match="another process"):
        Feeding(folder, RecordingConfig())
    feed(folder)


def test_a_cursor_is_what_it_was(tmp_path: Path) -> None:
    cursor = Cursor("fed-1@3.0", "abc.7", memo={"a": [1]})
    for trial in (0, 9, 4000):
        cursor.close(trial)
    cursor.live[7] = LiveRun(2, 55, 1234)
    file = CursorFile(tmp_path / "new", "tb")
    file.write(cursor)
    assert file.read() == cursor
    assert [n for n in range(5000) if cursor.is_closed(n)] == [0, 9, 4000]
    assert cursor.closed_runs == 3


def whole_cursor(**other: object) -> str:
    """A cursor as it is written, with some of it otherwise."""
    body = {"version": 1, "experiment": "x", "after": "", "closed": "", "live": {}, "memo": None}
    return json.dumps(body | other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '{"version": 1}',
        '{"version": 2, "experiment": "x"}',
        "\0" * 40,
        whole_cursor(after="none of ours"),
        whole_cursor(after="a.1.2.3"),
        whole_cursor(live={"-1": [1, 1, None]}),
        whole_cursor(live={str(1 << 80): [1, 1, None]}),
        whole_cursor(live={"9" * 5_000: [1, 1, None]}),
        whole_cursor(live={"1": [1, 1 << 80, None]}),
        whole_cursor(live={"1": [True, 1, None]}),
    ],
    ids=lambda text: text[-60:-7],
)
def test_a_cursor_that_is_none_is_begun_anew(tmp_path: Path, text: str) -> None:
    """Mutation: a number or a place that no store has ends the sink for good."""
    file = CursorFile(tmp_path, "tb")
    file.path.write_text(text)
    assert file.read() is None
    file.path.write_text(whole_cursor(live={"1": [1, 1, None]}))
    assert file.read() is not None


def test_tensorboards_files_are_a_function_of_the_store(tmp_path: Path) -> None:
    """Mutation: a file that is not cut back to the cursor's place."""
    folder = new_folder(tmp_path)
    section = TensorBoardConfig(kind="tensorboard", folder=str(tmp_path / "out"))
    dice = random.Random(3)
    with journal_of(folder) as journal:
        life = FedLife(journal)
        for _ in life.some(range(1, 41), 30):
            if dice.random() < 0.3:
                with Feeding(folder, section) as feeding:
                    feeding.step()
                    live = list((tmp_path / "out").rglob("trial-*/*tfevents*"))
                    live = [path for path in live if b"session_end_info" not in path.read_bytes()]
                for path in live:  # what a crash leaves: bytes beyond the cursor
                    if dice.random() < 0.5:
                        with path.open("ab") as file:
                            file.write(b"torn")
                    elif dice.random() < 0.2:
                        path.unlink()  # or fewer than the cursor says: a power cut
    with Feeding(folder, section) as feeding:
        while feeding.step():
            pass
    whole = TensorBoardConfig(kind="tensorboard", folder=str(tmp_path / "whole"))
    with Feeding(folder, whole) as feeding:
        while feeding.step():
            pass
    written, at_once = bytes_below(tmp_path / "out"), bytes_below(tmp_path / "whole")
    assert len(at_once) == 41
    assert written == at_once


def test_nothing_is_written_into_somebody_elses_experiment(
    tmp_path: Path, kind: RecordingKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: root, who may write there, leaves files in a user's folder."""

    def refuse(folder: Path) -> None:
        raise NotOurs("this is somebody else's experiment")

    folder = new_folder(tmp_path)
    fill(folder, 1, 1)
    monkeypatch.setattr(feeding_module, "demand_ours", refuse)
    with pytest.raises(NotOurs):
        Feeding(folder, RecordingConfig())
    assert not (folder / "sinks").exists()
    there = TensorBoardConfig(kind="tensorboard", folder=str(tmp_path / "mine"))
    monkeypatch.setattr(feeding_module, "kind_of_section", sink_kinds.kind_of_section)
    with Feeding(folder, there) as feeding:
        feeding.step()
    assert len(bytes_below(tmp_path / "mine")) == 2


def test_two_targets_of_one_name_have_a_cursor_each(
    tmp_path: Path, kind: RecordingKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a second server gets nothing, since the first one has it all."""
    folder = new_folder(tmp_path)
    fill(folder, 3, 1)
    feed(folder)
    monkeypatch.setattr(RecordingKind, "target", lambda *_: "elsewhere")
    kind.runs.clear()
    feed(folder)
    assert sorted(kind.runs) == [1, 2, 3]


def test_kinds_of_others_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "tensorboard" in sink_kinds.installed_kinds()
