"""Training services: NNI's spellings, lists, and the record of both."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.experiment import ExperimentConfig, ExperimentFileErrors, build_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.platforms.ssh.section import SshServiceConfig


@pytest.fixture
def machines(tmp_path: Any) -> list[dict[str, Any]]:
    (tmp_path / "key").touch()
    return [
        {"host": "gpu1", "user": "me", "keyFile": "key", "prolog": "module load cuda"},
        {
            "host": "gpu2",
            "port": 2222,
            "jump": "gate",
            "weightsRoot": "/mnt/w/",
            "weightsReadRoots": ["/p/"],
        },
    ]


def built(good: dict[str, Any], service: Any) -> ExperimentConfig:
    return build_experiment(good | {"trainingService": service, "weightsReadRoots": ["."]})


def test_nnis_spellings_mean_the_same(good: dict[str, Any], machines: Any) -> None:
    ours = built(good, {"platform": "ssh", "machineList": machines, "reuseMode": "forked"})
    first = {"ip": "gpu1", "username": "me", "sshKeyPath": "key", "preCommand": "module load cuda"}
    theirs = {"platform": "remote", "machine_list": [first, machines[1]], "reuse_mode": True}
    assert ours == built(good, theirs)


def test_what_is_read(good: dict[str, Any], machines: Any, tmp_path: Any) -> None:
    service = built(good, {"platform": "ssh", "machineList": machines}).training_service
    assert isinstance(service, SshServiceConfig)
    one, two = service.machine_list
    assert (one.key_file, one.python, one.work_folder) == (
        tmp_path / "key",
        "python3",
        "~/.bequeath",
    )
    assert (two.label, two.weights_root) == ("gpu2:2222", "/mnt/w")
    assert (one.weights_read_roots, two.weights_read_roots) == ((), ("/p",))
    assert two.jump is not None
    assert (two.jump.host, two.jump.port) == ("gate", None)


@pytest.mark.parametrize(
    "text, host, user, port",
    [
        ("gate", "gate", None, None),
        ("me@gate:22", "gate", "me", 22),
        ("[fe80::1]:2200", "fe80::1", None, 2200),
    ],
)
def test_short_forms_of_jumps(
    good: dict[str, Any], text: str, host: str, user: str | None, port: int | None
) -> None:
    made = built(good, {"platform": "ssh", "machineList": [{"host": "a", "jump": text}]})
    assert isinstance(made.training_service, SshServiceConfig)
    jump = made.training_service.machine_list[0].jump
    assert jump is not None
    assert (jump.host, jump.user, jump.port) == (host, user, port)


def test_the_record_gives_back_the_same(
    good: dict[str, Any], machines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets stay references in it. Mutation: a list of services is written as one."""
    monkeypatch.setenv("LAB_PASSWORD", "geheim")
    machines[0]["password"] = "env:LAB_PASSWORD"
    for service in (
        {"platform": "ssh", "machineList": machines},
        [{"platform": "local", "slots": 1}, {"platform": "ssh", "machineList": machines}],
        {"platform": "local"},
    ):
        config = built(good, service)
        text = to_json(config)
        assert "geheim" not in text
        assert from_json(text) == config


def test_what_is_read_here_for_a_machine_counts_from_the_files_folder(
    good: dict[str, Any], machines: list[dict[str, Any]], tmp_path: Any
) -> None:
    """The head stands elsewhere when it reads them, and the next one elsewhere again."""
    (tmp_path / "secret").write_text("s")
    machines[0] |= {
        "password": "file:secret",
        "environment": {"TOKEN": "file:secret", "THREADS": 1, "URL": "literal:file:x"},
    }
    service = built(good, {"platform": "ssh", "machineList": machines}).training_service
    assert isinstance(service, SshServiceConfig)
    one = service.machine_list[0]
    absolute = f"file:{tmp_path / 'secret'}"
    assert one.password == absolute
    assert one.environment == {"TOKEN": absolute, "THREADS": "1", "URL": "literal:file:x"}


def test_a_variable_of_a_machine_has_a_name_that_one_can_have(
    good: dict[str, Any], machines: list[dict[str, Any]]
) -> None:
    machines[0]["environment"] = {"A=B": "x"}
    with pytest.raises(ExperimentFileErrors, match="no environment variable can have"):
        built(good, {"platform": "ssh", "machineList": machines})


def test_a_list_of_services_is_empty_only_if_nothing_is_in_it(good: dict[str, Any]) -> None:
    """Mutations: items that are wrong themselves make it an empty list, which it is not."""
    with pytest.raises(ExperimentFileErrors) as wrong:
        built(
            good, [{"platform": "local", "cost": "cheap"}, {"platform": "ssh", "machineList": []}]
        )
    messages = [error.message for error in wrong.value.errors]
    assert messages == [
        "'trainingService[0].cost' must be a number, not 'cheap'",
        "'trainingService[1]' names no machine",
    ]
    with pytest.raises(ExperimentFileErrors, match="'trainingService' must not be empty"):
        built(good, [])


def test_workers_are_listed_once_and_anew_for_a_copy(good: dict[str, Any]) -> None:
    """A thousand workers ask how many there are. Mutation: a copy has those of the original."""
    config = build_experiment(good | {"trialConcurrency": 3})
    assert config.workers is config.workers
    assert [worker.slots for _, worker in config.workers] == [3]
    other = config.model_copy(update={"trial_concurrency": 5})
    assert [worker.slots for _, worker in other.workers] == [5]
    assert [worker.slots for _, worker in config.workers] == [3]
    assert config == build_experiment(good | {"trialConcurrency": 3})
