import itertools
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment import ExperimentConfig, build_experiment
from dispatcher.experiment.fields import Section
from dispatcher.experiment.keys import sections_of
from dispatcher.experiment.snapshot import from_json, to_json


def _sections() -> list[type[Section]]:
    return [ExperimentConfig, *(inner for _, inner in sections_of(ExperimentConfig))]


def test_defaults_are_those_of_the_design(config: ExperimentConfig) -> None:
    assert config.multi_thread is True
    assert config.on_tuner_error == "fail"
    assert config.on_stall == "fail"
    assert config.stall_timeout == 300
    assert config.head_grace == 120
    assert config.retention.keep == "all"
    assert (config.weight_keys.save, config.weight_keys.restore) == ("save_path", "restore_path")
    assert (config.leases.alive, config.leases.suspect, config.leases.lost) == (5, 30, 120)
    assert config.training_service.reuse_mode == "none"
    assert config.on_trial_without_result == "ignore"
    assert config.effective_lookahead == 8


def test_lookahead_follows_concurrency_unless_given(good: dict[str, Any]) -> None:
    assert build_experiment(good | {"trialConcurrency": 10}).effective_lookahead == 20
    assert build_experiment(good | {"lookahead": 0}).effective_lookahead == 0


def test_every_key_is_the_camel_case_of_its_attribute_and_has_a_description() -> None:
    for section, (name, info) in itertools.chain.from_iterable(
        ((section, item) for item in section.model_fields.items()) for section in _sections()
    ):
        assert info.alias == to_camel(name), (section, name)
        assert info.description, (section, name)


def test_all_three_spellings_say_the_same(good: dict[str, Any]) -> None:
    camel = {
        "maxTrialDuration": "10m",
        "weightKeys": {"save": "out", "restore": "in"},
        "trainingService": {"reuseMode": "forked", "cpusPerTrial": 2, "maxTrialsPerWorker": 9},
        "limits": {"maxMetricsPerTrial": 7},
    }
    snake = {
        "max_trial_duration": "10m",
        "weight_keys": {"save": "out", "restore": "in"},
        "training_service": {
            "reuse_mode": "forked",
            "cpus_per_trial": 2,
            "max_trials_per_worker": 9,
        },
        "limits": {"max_metrics_per_trial": 7},
    }
    nni = {
        "MaxTrialDuration": "10m",
        "weightkeys": {"Save": "out", "RESTORE": "in"},
        "trainingservice": {"reusemode": "forked", "CpusPerTrial": 2, "max_TrialsPerWorker": 9},
        "Limits": {"maxmetricspertrial": 7},
    }
    first, second, third = (build_experiment(good | keys) for keys in (camel, snake, nni))
    assert first == second == third
    assert first.max_trial_duration == 600
    assert first.training_service.max_trials_per_worker == 9


@pytest.mark.parametrize(
    "written,keep,count",
    [
        ("all", "all", None),
        ({"keep": "all"}, "all", None),
        ({"best": 5}, "best", 5),
        ({"keep": {"best": 5}}, "best", 5),
        ({"keep": "best", "count": 5}, "best", 5),
        ({"lastGenerations": 3}, "last-generations", 3),
        ({"last_generations": 3}, "last-generations", 3),
        ("ancestors-of-live", "ancestors-of-live", None),
        ({"keep": "ancestorsOfLive"}, "ancestors-of-live", None),
    ],
)
def test_forms_of_retention(
    good: dict[str, Any], written: object, keep: str, count: int | None
) -> None:
    retention = build_experiment(good | {"retention": written}).retention
    assert (retention.keep, retention.count) == (keep, count)


@pytest.mark.parametrize(
    "written,mode",
    [(True, "forked"), (False, "none"), ("no", "none"), ("yes", "forked"), ("Forked", "forked")],
)
def test_forms_of_reuse_mode(good: dict[str, Any], written: object, mode: str) -> None:
    service = {"platform": "local", "reuseMode": written}
    assert build_experiment(good | {"trainingService": service}).training_service.reuse_mode == mode


@pytest.mark.parametrize(
    "written,read",
    [("ignore", "ignore"), (None, "ignore"), ("fail", "fail"), (0, 0.0), (-1.5, -1.5)],
)
def test_forms_of_a_missing_result(good: dict[str, Any], written: object, read: object) -> None:
    config = build_experiment(good | {"onTrialWithoutResult": written})
    assert config.on_trial_without_result == read


def test_the_tuner_says_which_way_is_better(good: dict[str, Any]) -> None:
    assert build_experiment(good).optimize_mode == "maximize"
    tuner = {"name": "Random", "classArgs": {"optimize_mode": "minimize"}}
    assert build_experiment(good | {"tuner": tuner}).optimize_mode == "minimize"


def test_paths_are_absolute_and_home_is_expanded(
    good: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    (tmp_path / "code").mkdir()
    keys = {"trialCodeDirectory": "code/../code", "weightsRoot": "~/weights"}
    config = build_experiment(good | keys, base_folder=tmp_path)
    assert config.trial_code_directory == tmp_path / "code"
    assert config.weights_root == Path("/home/somebody/weights")
    assert config.experiment_working_directory == Path("/home/somebody/bequeath-experiments")


def test_nothing_can_be_changed(config: ExperimentConfig) -> None:
    with pytest.raises(ValidationError):
        config.trial_concurrency = 3  # type: ignore[misc]


def test_a_class_of_ones_own(good: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Evolution: ...\n")
    for tuner in (
        {"className": "mine:Evolution"},
        {"className": "mine.Evolution", "codeDirectory": "."},
        {"file": "mine.py", "className": "Evolution"},
    ):
        read = build_experiment(good | {"tuner": tuner}, base_folder=tmp_path).tuner
        assert not read.builtin
        assert read.bare_class_name == "Evolution"
        assert read.module == (None if "file" in tuner else "mine")


def test_a_builtin_tuner_gets_its_registered_name(good: dict[str, Any]) -> None:
    read = build_experiment(good | {"tuner": {"name": "grid_search"}}).tuner
    assert (read.builtin, read.name, read.module) == (True, "GridSearch", None)


def test_values_keep_no_tie_to_what_was_passed(good: dict[str, Any]) -> None:
    space = {"x": {"_type": "choice", "_value": ["a", "b"]}}
    config = build_experiment(good | {"searchSpace": space})
    space["x"]["_value"].append("c")  # type: ignore[attr-defined]
    assert config.search_space["x"]["_value"] == ["a", "b"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "head.example.org", "*", "eth0"])
def test_a_socket_that_others_can_reach_is_asked_for_twice(good: dict[str, Any], host: str) -> None:
    there = {"transport": "tcp", "host": host}
    with pytest.raises(ExperimentFileError, match="other machines can reach") as refused:
        build_experiment(good | {"channel": there})
    assert "beyondThisMachine" in refused.value.hint
    asked = build_experiment(good | {"channel": there | {"beyondThisMachine": True}})
    assert asked.channel.host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_a_socket_of_this_machine_is_asked_for_once(good: dict[str, Any], host: str) -> None:
    build_experiment(good | {"channel": {"transport": "tcp", "host": host}})


def test_a_record_that_does_not_hold_is_refused_without_its_values(
    config: ExperimentConfig,
) -> None:
    text = to_json(config).replace(
        '"trialEnvironment": {}', '"trialEnvironment": {"A": ["s3cret"]}'
    )
    assert "s3cret" in text
    with pytest.raises(ExperimentFileError) as refused:
        from_json(text)
    assert "s3cret" not in str(refused.value)


def test_what_was_recorded_before_that_question_is_still_read(good: dict[str, Any]) -> None:
    there = {"transport": "tcp", "host": "0.0.0.0", "beyondThisMachine": True}
    text = to_json(build_experiment(good | {"channel": there}))
    older = text.replace(',\n      "beyondThisMachine": true', "")
    assert older != text
    assert from_json(older).channel.host == "0.0.0.0"
