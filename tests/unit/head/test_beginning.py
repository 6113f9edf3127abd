"""What a head writes before anything else: that it leads, and by which settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.creating import create
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.folders import ExperimentFolder
from dispatcher.head import Head
from dispatcher.past.history import read_past
from dispatcher.store.journal import SqliteJournal

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


def test_a_pause_in_which_settings_were_changed_is_not_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = ExperimentFolder(folder)
    now = 1_800_000_000.0
    monkeypatch.setattr("dispatcher.head.time.time", lambda: now)
    journal = SqliteJournal.open(home.journal)
    try:
        for epoch, limit in ((1, 5), (2, 9), (3, 9)):
            config = from_json(home.read_config(), str(home.config))
            config = config.model_copy(update={"max_trial_number": limit})
            home.config.write_text(to_json(config))
            head = Head(folder)
            head._config = config
            state = read_past(journal).state
            head._begin_epoch(journal, state, epoch)
            assert state.active_s < HOUR
            assert state.settings.max_trials == limit
            assert read_past(journal).state.settings == state.settings
            now += 72 * HOUR
        told = [x.event.settings for x in journal.rows() if isinstance(x.event, e.HeadStarted)]
        assert [settings and settings.max_trials for settings in told] == [None, 9, None]
        assert not [x for x in journal.rows() if isinstance(x.event, e.SettingsUpdated)]
    finally:
        journal.close()
