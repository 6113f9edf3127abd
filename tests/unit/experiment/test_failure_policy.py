"""The keys that say what is done about failures, and what the core is told of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dispatcher import codec
from dispatcher.core.events import ExperimentCreated
from dispatcher.core.model import EndReason
from dispatcher.core.settings import Settings
from dispatcher.errors import UserError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.failure_policy import RetriesConfig
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.wiring.settings import settings_of


def config(**keys: Any) -> ExperimentConfig:
    values = {
        "tuner": {"name": "Random"},
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialConcurrency": 2,
    }
    return build_experiment({**values, **keys})


def test_what_a_file_that_says_nothing_gets() -> None:
    settings = settings_of(config())
    assert (settings.trial_retries, settings.lost_retries, settings.retries) == (1, 5, {})
    assert (settings.max_failed_in_a_row, settings.quarantine_after) == (25, 8)
    assert settings.losses_at_once
    assert settings.through_when_stopped
    assert settings.end_dropped
    assert settings.placed_anew
    assert config().disk_reserve == 500 << 20


def test_the_rules_that_came_later_are_off_for_a_journal_that_does_not_name_them() -> None:
    """Replayed under other rules than those it was written under, it would tell another story."""
    older = Settings(slots=1, lookahead=8)
    assert not older.losses_at_once
    assert not older.through_when_stopped
    assert not older.end_dropped
    assert not older.placed_anew
    assert (older.retries, older.max_failed_in_a_row, older.quarantine_after) == ({}, 0, 0)


@pytest.mark.parametrize("slots, limit", [(1, 25), (6, 25), (7, 28), (100, 400)])
def test_many_slots_allow_many_failures_before_the_first_success(slots: int, limit: int) -> None:
    found = config(trialConcurrency=slots)
    assert settings_of(found).max_failed_in_a_row == limit


def test_what_is_given_is_taken() -> None:
    found = config(maxFailedTrialsInARow=3, quarantineAfter=0, diskReserve="2gb", trialRetries=0)
    assert settings_of(found).max_failed_in_a_row == 3
    assert settings_of(found).quarantine_after == 0
    assert found.disk_reserve == 2 << 30
    assert settings_of(config(maxFailedTrialsInARow=0)).max_failed_in_a_row == 0
    assert settings_of(config()).quarantine_pause_s == 60.0
    assert settings_of(config(quarantinePause="5m")).quarantine_pause_s == 300.0
    assert config(diskReserve=0).disk_reserve == 0
    assert from_json(to_json(found), "there") == found


def test_limits_of_single_reasons_by_the_core_s_own_words() -> None:
    every = {to_camel(name): n for n, name in enumerate(RetriesConfig.model_fields)}
    found = settings_of(config(retries=every)).retries
    assert list(found.values()) == list(every.values())
    assert {EndReason(word) for word in found} == {
        EndReason.FAILED,
        EndReason.SIGNALLED,
        EndReason.OUT_OF_MEMORY,
        EndReason.START_FAILED,
        EndReason.TIMED_OUT,
        EndReason.PREEMPTED,
    }


def to_camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


@pytest.mark.parametrize(
    "keys, where",
    [
        ({"retries": {"outOfMemory": -1}}, "retries.outOfMemory"),
        ({"retries": {"killed": 1}}, "killed"),
        ({"retries": 3}, "retries"),
        ({"maxFailedTrialsInARow": -1}, "maxFailedTrialsInARow"),
        ({"quarantineAfter": True}, "quarantineAfter"),
        ({"quarantinePause": 0}, "quarantinePause"),
        ({"diskReserve": "5%"}, "diskReserve"),
        ({"diskReserve": -1}, "diskReserve"),
    ],
)
def test_each_way_to_get_it_wrong_is_named(keys: dict[str, Any], where: str) -> None:
    with pytest.raises(UserError, match=where):
        config(**keys)


def test_the_settings_of_a_journal_of_the_version_before_are_read() -> None:
    """They had none of the fields for failures, and mean what they meant."""
    written = {"slots": 2, "lookahead": 8, "trial_retries": 3, "on_stall": "wait"}
    payload = msgspec.msgpack.encode({"settings": written})
    settings = codec.decode("ExperimentCreated", payload).settings
    assert (settings.slots, settings.trial_retries, settings.on_stall) == (2, 3, "wait")
    assert not settings.losses_at_once
    assert settings.max_failed_in_a_row == 0
    again = codec.decode("ExperimentCreated", codec.encode(ExperimentCreated(settings)))
    assert again.settings == settings
