import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment import ExperimentConfig
from dispatcher.experiment.builtin_names import TUNERS
from dispatcher.experiment.reference import GROUPS, json_schema, reference_markdown

ROOT = Path(__file__).parents[3]


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _nodes(inner)


def test_references_lead_somewhere_and_all_keys_are_described() -> None:
    schema = json_schema()
    assert json.loads(json.dumps(schema)) == schema
    for node in _nodes(schema):
        if "$ref" in node:
            target: Any = schema
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
        if node.get("additionalProperties") is False and "best" not in node["properties"]:
            for key, value in node["properties"].items():
                assert value.get("description"), key
                assert "_" not in key


def test_both_spellings_pass_and_others_do_not() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    good = {
        "search_space": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random", "class_args": {}},
        "trialCommand": "python trial.py",
        "trial_concurrency": 1,
        "retention": {"best": 3},
        "stopWhen": {"target": 1, "noProgress": 50},
        "callbacks": {"onTrialEnd": "hooks:tell", "on_new_best": {"command": "true"}},
        "trainingService": {"reuse_mode": True},
        "maxTrialDuration": "1h30m",
        "x-anchors": [1],
    }
    validator = jsonschema.Draft202012Validator(json_schema())
    assert not list(validator.iter_errors(good))
    for wrong in (
        {"maxTrialNumer": 1},
        {"trialFunction": "a:b"},
        {"trial_concurrency": 0},
        {"maxTrialDuration": "soon"},
        {"retention": {"worst": 3}},
        {"stopWhen": {"noProgress": 0}},
        {"stopWhen": {"noProgress": {"trials": 1, "least_improvement": -1}}},
        {"callbacks": {"onTrialEnd": "notify"}},
    ):
        assert list(validator.iter_errors(good | wrong)), wrong


def test_snake_case_is_accepted_as_a_pattern() -> None:
    schema = json_schema()
    assert schema["additionalProperties"] is False
    for name, info in ExperimentConfig.model_fields.items():
        assert info.alias in schema["properties"]
        if name != info.alias:
            assert schema["patternProperties"][f"^{name}$"] == {
                "$ref": f"#/properties/{info.alias}"
            }


def test_the_reference_has_each_key_once() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(ExperimentConfig.model_fields)


def test_the_committed_reference_is_the_generated_one() -> None:
    committed = (ROOT / "docs" / "configuration.md").read_text()
    assert committed == reference_markdown(), "run `make docs`"


def test_the_names_of_built_in_tuners_are_those_of_the_tuners() -> None:
    tuners = pytest.importorskip("tuners.builtin")
    assert sorted(TUNERS) == sorted(tuners.BUILTIN_NAMES)
