"""What a head writes before anything else: that it leads, and by which settings."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import State
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.engine import ROWS_BESIDE, Engine, OwnedFact
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.experiments.creating import create
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.beginning import begin_epoch, news_of_head
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.history import read_past
from dispatcher.store.verify import verify
from dispatcher.store.weights_ledger import Removal, SqliteWeightsLedger
from dispatcher.wiring.settings import settings_of
from tests.unit.store.life import Life

HOUR = 3600.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    values = {
        "experimentName": "begins",
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(tmp_path / "code"),
        "trialConcurrency": 1,
        "maxTrialNumber": 5,
        "maxExperimentDuration": "24h",
        "experimentWorkingDirectory": str(tmp_path),
    }
    return create(build_experiment(values))


def begin(
    journal: SqliteJournal, state: State, home: ExperimentFolder, epoch: int, now: float
) -> None:
    """As a head begins with the experiment's file as it is."""
    config = from_json(home.read_config(), str(home.config))
    news = news_of_head(epoch, state, settings_of(config), home.journal)
    begin_epoch(journal, state, news, now, durable=True)


def test_a_pause_in_which_settings_were_changed_is_not_counted(folder: Path) -> None:
    home = ExperimentFolder(folder)
    now = 1_800_000_000.0
    journal = SqliteJournal.open(home.journal)
    try:
        for epoch, limit in ((1, 5), (2, 9), (3, 9)):
            config = from_json(home.read_config(), str(home.config))
            config = config.model_copy(update={"max_trial_number": limit})
            home.config.write_text(to_json(config))
            state = read_past(journal).state
            begin(journal, state, home, epoch, now)
            assert state.active_s < HOUR
            assert state.settings.max_trials == limit
            assert read_past(journal).state.settings == state.settings
            now += 72 * HOUR
        told = [x.event.settings for x in journal.rows() if isinstance(x.event, e.HeadStarted)]
        assert [settings and settings.max_trials for settings in told] == [None, 9, None]
        assert not [x for x in journal.rows() if isinstance(x.event, e.SettingsUpdated)]
    finally:
        journal.close()


def test_weights_that_went_or_may_have_gone_while_nobody_led_are_told_once(folder: Path) -> None:
    """``weights gc`` says what it will remove, removes it and says so; killed in between, it may
    have removed some. Mutations: only what is known to be gone is told, and children of the rest
    start and fail; each later head tells of all of them again."""
    home = ExperimentFolder(folder)
    journal = SqliteJournal.open(home.journal)
    try:
        life = Life.of(journal, read_past(journal).state)
        life.say(e.HeadStarted(1), e.WorkerJoined(WorkerId("local"), 1), e.TunerHostReady())
        for trial in range(3):
            life.whole(trial)
        ledger = SqliteWeightsLedger.open(home.journal)
        paths = {trial: f"t/{trial}" for trial in range(3)}
        intended = [Removal(path, trial, 10, None) for trial, path in paths.items() if trial]
        assert ledger.intend_removal(intended, 2_000.0)
        ledger.removal_done(paths[1], 2_001.0)
        ledger.close()
        for epoch in (2, 3):
            state = read_past(journal).state
            begin(journal, state, home, epoch, time.time())
            assert state.removed_weights == {1, 2}
            assert read_past(journal).state.removed_weights == {1, 2}
        told = [x.event for x in journal.rows() if isinstance(x.event, e.RemovalAnnounced)]
        assert told == [e.RemovalAnnounced((TrialId(1), TrialId(2)))]
    finally:
        journal.close()


class Nobody:
    """Takes all actions and does nothing."""

    def perform(self, _action: Any) -> None: ...
    def flush(self) -> None: ...
    def act(self, _action: Any) -> None: ...


def test_rows_that_lagged_behind_when_a_head_was_killed_are_written(folder: Path) -> None:
    """One "not now" too many ended all requests, by a joint rule that no event repeats."""
    home = ExperimentFolder(folder)
    journal = SqliteJournal.open(home.journal)
    many = 3 * ROWS_BESIDE
    state = read_past(journal).state
    nobody: Any = Nobody()
    unused: Any = None
    engine = Engine(
        state, journal, unused, nobody, {"local": nobody}, unused, nobody, row=journal.last
    )
    wider = replace(state.settings, slots=many, max_trials=None)
    facts: list[e.Event] = [e.SettingsUpdated(wider), e.HeadStarted(1)]
    facts += [e.WorkerJoined(WorkerId("local"), many), e.TunerHostReady()]
    for event in facts:
        engine.turn([OwnedFact("", event)], last=False)
    while state.dirty:
        engine._commit([], durable=False)
    not_now = [e.RequestFailed(TrialId(n), e.RequestEnd.NOT_NOW) for n in range(many)]
    engine.turn([OwnedFact("", event) for event in not_now[:-1]], last=False)
    while state.dirty:
        engine._commit([], durable=False)
    engine.turn([OwnedFact("", not_now[-1])], last=False)
    journal.close()  # kill -9
    assert len(state.dirty) > ROWS_BESIDE
    assert not verify(home.journal).ok

    journal = SqliteJournal.open(home.journal)
    state = read_past(journal).state
    begin(journal, state, home, 2, time.time())
    journal.close()
    found = verify(home.journal)
    assert found.ok, [str(each) for each in found.differences]
