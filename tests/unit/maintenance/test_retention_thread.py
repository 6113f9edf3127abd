"""The thread beside the engine that asks before it removes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dispatcher.core.actions import GrantVersions
from dispatcher.core.events import StoresReviewed
from dispatcher.core.ids import TrialId
from dispatcher.core.model import State, Version
from dispatcher.core.settings import Settings
from dispatcher.errors import PassingBackendError
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.weights_place import RetentionConfig
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.maintenance import retention
from dispatcher.store.journal import SqliteJournal
from dispatcher.weight_keeper import GcPlan

CONFIG = build_experiment(
    {
        "experimentName": "sweeping",
        "trialCommand": "true",
        "trialConcurrency": 1,
        "tuner": {"name": "random"},
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "trainingService": {"platform": "local"},
    },
    base_folder=Path(__file__).parent,
)


def test_a_sweep_that_waits_for_an_engine_that_has_ended_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an answer nothing may be removed; and nobody waits for one that cannot come."""
    monkeypatch.setattr(retention, "ANSWER_S", 600.0)
    asked = threading.Event()
    thread = retention.RetentionThread(
        CONFIG,
        ExperimentFolder(tmp_path),
        lambda kind, text: None,
        lambda event: asked.set(),
    )
    answers: list[tuple[int, ...]] = []
    sweep = threading.Thread(target=lambda: answers.append(thread.announce([1, 2])))
    sweep.start()
    assert asked.wait(120)
    thread.close()
    sweep.join(120)
    assert answers == [()]


def test_a_look_at_the_stores_is_let_go_and_asks_nobody_once_the_thread_is_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ANSWER_S", 600.0)
    said: list[object] = []

    def end(event: object) -> None:
        said.append(event)
        thread.close()

    thread = retention.RetentionThread(
        CONFIG, ExperimentFolder(tmp_path), lambda kind, text: None, end
    )
    assert thread.review_stores() is None
    assert thread.review_stores() is None
    assert len(said) == 1


def test_an_answer_that_came_too_late_is_none_to_the_next_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know the version that came since: its folder would go for a leftover."""
    monkeypatch.setattr(retention, "ANSWER_S", 0.0)
    asked: list[StoresReviewed] = []
    old, new = (Version(f"omega/{trial}.1-0", "d", 1, TrialId(trial), 1) for trial in (1, 2))

    def answer(event: StoresReviewed) -> None:
        asked.append(event)
        if len(asked) == 2:
            late, due = (each.question for each in asked)
            thread.versions_granted(GrantVersions((), (("omega", 1, old),), late))
            kept = (("omega", 1, old), ("omega", 2, new))
            thread.versions_granted(GrantVersions((), kept, due))

    thread = retention.RetentionThread(
        CONFIG,
        ExperimentFolder(tmp_path),
        lambda kind, text: None,
        answer,  # type: ignore[arg-type]
    )
    assert thread.review_stores() is None, "there was no answer"
    monkeypatch.setattr(retention, "ANSWER_S", 600.0)
    granted = thread.review_stores()
    assert granted is not None
    assert set(granted.kept) == {old.path, new.path}


def test_a_sweep_that_a_share_refused_is_tried_again_without_a_trial_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AGAIN_S", 0.01)
    monkeypatch.setattr(retention, "PERIOD_S", 0.01)
    folder = ExperimentFolder(tmp_path)
    SqliteJournal.open(folder.journal).close()
    notes: list[str] = []
    swept = threading.Event()

    def sweep(*_: object) -> int:
        if len(notes) < 3:
            raise PassingBackendError("the server does not answer")
        swept.set()
        return 0

    monkeypatch.setattr(retention, "sweep_checkpoints", sweep)
    thread = retention.RetentionThread(
        CONFIG, folder, lambda kind, text: notes.append(text), lambda event: None
    )
    thread.start()
    assert swept.wait(120)
    thread.close()
    assert "the server does not answer" in notes[0]


def test_leftovers_are_looked_for_while_nothing_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "LEFTOVERS_S", 0.01)
    monkeypatch.setattr(retention, "PERIOD_S", 0.01)
    folder = ExperimentFolder(tmp_path)
    SqliteJournal.open(folder.journal).close()
    looked = threading.Event()
    monkeypatch.setattr(retention.LeftoverSweep, "look", lambda sweep: looked.set() or 0)
    thread = retention.RetentionThread(CONFIG, folder, lambda kind, text: None, lambda event: None)
    thread.start()
    assert looked.wait(120)
    thread.close()


def test_weights_in_doubt_are_named_once_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after each trial that ends: nobody would read what is said a thousand times."""
    monkeypatch.setattr(retention, "PERIOD_S", 0.01)
    swept = threading.Semaphore(0)

    class Keeper(retention.WeightKeeper):
        def sweep(self, announce: object) -> GcPlan:
            swept.release()
            return GcPlan(True, (), 0, 0, {}, {}, {3: "found no manifest"})

    monkeypatch.setattr(retention, "WeightKeeper", Keeper)
    folder = ExperimentFolder(tmp_path)
    config = CONFIG.model_copy(update={"retention": RetentionConfig(keep="best", count=1)})
    journal = SqliteJournal.open(folder.journal)
    notes: list[str] = []
    thread = retention.RetentionThread(
        config, folder, lambda kind, text: notes.append(text), lambda event: None
    )
    thread.start()
    for _ in range(3):
        thread.trial_over()
        assert swept.acquire(timeout=120)
    thread.close()
    assert len(notes) == 1
    assert "the weights of trial 3 are not as they were committed" in notes[0]
    retention.sweep_at_the_end(
        config,
        folder,
        journal,
        State(Settings(slots=1, lookahead=0)),
        lambda kind, text: notes.append(text),
    )
    assert notes == [notes[0]] * 2
    journal.close()
