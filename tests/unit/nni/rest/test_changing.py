"""Each route of NNI's REST that changes something; over a head that runs see tests/integration."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.experiments.handle import ExperimentHandle
from tests.unit.nni.rest.conftest import Asked, Make

SPACE = {"y": {"_type": "choice", "_value": [1, 2]}}


@pytest.mark.parametrize(
    "kind, params, key, now",
    [
        ("TRIAL_CONCURRENCY", {"trialConcurrency": 7}, "trialConcurrency", 7),
        ("MAX_TRIAL_NUM", {"maxTrialNumber": 9}, "maxTrialNumber", 9),
        ("MAX_TRIAL_NUM", {"maxTrialNum": 8}, "maxTrialNumber", 8),
        ("MAX_EXEC_DURATION", {"maxExperimentDuration": "3h"}, "maxExperimentDuration", 10_800),
        ("MAX_EXEC_DURATION", {"maxExecDuration": 90}, "maxExperimentDuration", 90),
        ("SEARCH_SPACE", {"searchSpace": SPACE}, "searchSpace", SPACE),
    ],
)
def test_one_value_of_a_profile_is_taken(
    asked: Asked, kind: str, params: dict[str, Any], key: str, now: Any
) -> None:
    """Mutation: another key of the profile would be taken, too."""
    before = ExperimentHandle(asked.folder).settings()
    profile = {"id": "x", "params": {"experimentName": "other", "debug": True, **params}}
    answer = asked("PUT", f"/experiment?update_type={kind}", profile)
    assert (answer.status, answer.body) == (200, b"")
    after = ExperimentHandle(asked.folder).settings()
    assert after[key] == now
    assert {name for name in after if after[name] != before[name]} == {key}


@pytest.mark.parametrize(
    "query, body, says",
    [
        ("?update_type=NAME", {"params": {}}, "no update_type"),
        ("", {"params": {}}, "no update_type"),
        ("?update_type=SEARCH_SPACE", {}, "params.searchSpace"),
        ("?update_type=SEARCH_SPACE", [1], "params.searchSpace"),
        ("?update_type=SEARCH_SPACE", {"params": [1]}, "params.searchSpace"),
        ("?update_type=TRIAL_CONCURRENCY", {"params": {"trialConcurrency": "x"}}, "whole number"),
        ("?update_type=TRIAL_CONCURRENCY", {"params": {"trialConcurrency": 0}}, "trialConcurrency"),
        ("?update_type=TRIAL_CONCURRENCY", {"params": {"trialConcurrency": 1 << 70}}, "number"),
        ("?update_type=MAX_EXEC_DURATION", {"params": {"maxExecDuration": "x"}}, "maxExperiment"),
    ],
)
def test_a_profile_that_is_wrong_changes_nothing(
    asked: Asked, query: str, body: Any, says: str
) -> None:
    before = ExperimentHandle(asked.folder).settings()
    answer = asked("PUT", f"/experiment{query}", body)
    assert answer.status == 400
    assert says in answer.json()["error"]
    assert ExperimentHandle(asked.folder).settings() == before


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", "/trial-jobs", {"x": 1}),
        ("DELETE", "/trial-jobs/0", None),
        ("POST", "/experiment/import-data", [{"parameter": {"x": 1}, "value": 1}]),
        ("DELETE", "/experiment", None),
    ],
)
def test_what_needs_a_head_says_that_none_runs(
    asked: Asked, method: str, path: str, body: Any
) -> None:
    asked.life.propose(0)
    answer = asked(method, path, body)
    assert answer.status == 503, answer
    assert answer.headers["retry-after"]
    assert "error" in answer.json()
    assert asked.finished == 0


@pytest.mark.parametrize(
    "method, path, body, status",
    [
        ("DELETE", "/trial-jobs/99", None, 404),
        ("DELETE", "/trial-jobs/x", None, 404),
        ("POST", "/trial-jobs", [1], 400),
        ("POST", "/trial-jobs", None, 400),
        ("POST", "/experiment/import-data", {"a": 1}, 400),
    ],
)
def test_what_is_no_trial_is_refused(
    asked: Asked, method: str, path: str, body: Any, status: int
) -> None:
    assert asked(method, path, body).status == status


def test_an_endpoint_of_an_experiment_closes_when_it_is_stopped_twice(make: Make) -> None:
    """NNI's stop ends its server, whether or not anything runs."""
    asked = make(until_over=True)
    assert asked("DELETE", "/experiment").status == 200
    assert asked.finished == 1


def test_a_head_that_does_not_answer_keeps_the_endpoint_open(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a stop that failed would be answered as if all were over."""
    asked = make(until_over=True)
    monkeypatch.setattr("dispatcher.nni.rest.changing.is_led", lambda folder: True)
    assert asked("DELETE", "/experiment").status == 503
    assert asked.finished == 0


def test_a_body_is_json_of_its_type(asked: Asked) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = asked("POST", "/trial-jobs", {"x": 1}, content_type=kind)
        assert answer.status == 415, kind
