import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment import ExperimentConfig, build_experiment
from dispatcher.experiment.snapshot import from_json, to_json


def test_every_section_comes_back_as_it_was(good: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class A: ...\n")
    (tmp_path / "token").write_text("s3cret")
    keys = {
        "experimentName": "Größe \U0001f600",
        "searchSpace": {"x": {"_type": "choice", "_value": [1, 1.0, True, None, "é", {"a": []}]}},
        "tuner": {"className": "mine:A", "classArgs": {"deep": {"list": (1, 2)}}},
        "assessor": {"file": "mine.py", "className": "A"},
        "seed": 7,
        "maxTrialDuration": "0.1s",
        "retryBackoff": 1 / 3,
        "onTrialWithoutResult": 0.1,
        "retention": {"best": 3},
        "weightsReadRoots": ["."],
        "trialEnvironment": {"TOKEN": "file:token", "HOME_IS": "env:HOME"},
        "trainingService": {"reuseMode": True, "preload": ["json"]},
        "channel": {"transport": "tcp", "port": 5555},
        "limits": {"maxParametersSize": "2mb"},
    }
    config = build_experiment(good | keys, base_folder=tmp_path)
    text = to_json(config)
    assert from_json(text) == config
    assert to_json(from_json(text)) == text
    assert "s3cret" not in text
    assert json.loads(text)["experiment"]["trialEnvironment"]["TOKEN"] == f"file:{tmp_path}/token"


def test_parameters_larger_than_a_message_are_refused_in_a_file_and_not_in_a_record(
    good: dict[str, Any], tmp_path: Path
) -> None:
    """0.1.0 took any size, and what it began goes on: it could not send larger ones either."""
    with pytest.raises(ExperimentFileError, match="must be 4mb at most, not 16mb"):
        build_experiment(good | {"limits": {"maxParametersSize": "16 MB"}}, base_folder=tmp_path)
    config = build_experiment(good | {"limits": {"maxParametersSize": "4mb"}}, base_folder=tmp_path)
    body = json.loads(to_json(config))
    body["experiment"]["limits"]["maxParametersSize"] = 16 << 20
    assert from_json(json.dumps(body)) == config


@given(
    st.floats(min_value=0.001, max_value=1e12),
    st.dictionaries(st.text(min_size=1), st.floats(allow_nan=False, allow_infinity=False)),
    st.integers(min_value=0, max_value=2**53),
)
def test_numbers_and_texts_come_back_exactly(
    seconds: float, arguments: dict[str, float], seed: int
) -> None:
    config = ExperimentConfig.model_validate(
        {
            "tuner": {"className": "a:B", "classArgs": arguments},
            "trialCommand": "true",
            "trialConcurrency": 1,
            "stallTimeout": seconds,
            "seed": seed,
        }
    )
    assert from_json(to_json(config)) == config


@pytest.mark.parametrize(
    "text,said",
    [
        ("{", "folder/x.json: not the record of an experiment: "),
        ("[]", "folder/x.json: not the record of an experiment: "),
        (
            '{"snapshotVersion": 2, "experiment": {}}',
            "folder/x.json: the record of an experiment has version 2",
        ),
        (
            '{"snapshotVersion": 1, "experiment": {}}',
            "folder/x.json: the record of an experiment does not hold",
        ),
    ],
)
def test_what_is_no_snapshot_is_refused(text: str, said: str) -> None:
    with pytest.raises(ExperimentFileError) as refused:
        from_json(text, "folder/x.json")
    assert str(refused.value).startswith(said)


def test_an_experiment_begun_before_versions_went_keeps_them_all(
    good: dict[str, Any], tmp_path: Path
) -> None:
    """Resumed by a newer head, it must not lose what nobody agreed to lose."""
    record = json.loads(to_json(build_experiment(good, base_folder=tmp_path)))
    assert from_json(json.dumps(record)).shared_stores.bound == 10
    del record["experiment"]["sharedStores"]
    assert from_json(json.dumps(record)).shared_stores.bound == 0
