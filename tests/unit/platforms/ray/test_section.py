"""Keys of the section, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import UserError
from dispatcher.experiment.loader import build_experiment
from dispatcher.platforms.ray.allocator import actor_options
from dispatcher.platforms.ray.section import RayServiceConfig


def section(**keys: Any) -> RayServiceConfig:
    return RayServiceConfig.model_validate({"platform": "ray", **keys})


def refusal(tmp_path: Path, **keys: Any) -> str:
    """What a file with these keys gets."""
    with pytest.raises(UserError) as raised:
        build_experiment(
            {
                "experimentWorkingDirectory": str(tmp_path),
                "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
                "tuner": {"name": "Random"},
                "trialCommand": "true",
                "trialConcurrency": 1,
                "trainingService": {"platform": "ray", **keys},
            }
        )
    return str(raised.value)


@pytest.mark.parametrize(
    "address", ["auto", "head:6379", "ray://head.example.org:10001", "[fd00::1]:6379"]
)
def test_addresses(address: str) -> None:
    assert section(address=address).address == address


def test_what_an_actor_asks_for_is_what_ray_gets() -> None:
    """Mutation: an option of the user's over one of ours."""
    made = section(
        cpus=4,
        gpus=0.5,
        memory="8GiB",
        actorResources={"fast": 1},
        options={"accelerator_type": "A100", "scheduling_strategy": "SPREAD"},
    )
    assert actor_options(made) == {
        "accelerator_type": "A100",
        "scheduling_strategy": "SPREAD",
        "num_cpus": 4.0,
        "num_gpus": 0.5,
        "memory": 8 * 2**30,
        "resources": {"fast": 1.0},
    }
    assert made.demand == {"CPU": 4.0, "GPU": 0.5, "memory": 8.0 * 2**30, "fast": 1.0}
    assert "GPU" not in section().demand


def test_a_runtime_environment_is_passed_as_it_is() -> None:
    wanted = {"pip": ["timm"], "env_vars": {"A": "1"}, "config": {"setup_timeout_seconds": 600}}
    assert section(runtimeEnv=wanted).runtime_env == wanted


@pytest.mark.parametrize(
    "keys, text",
    [
        ({"address": "head"}, "must be HOST:PORT, ray://HOST:PORT, auto or start, not 'head'"),
        ({"address": "http://head"}, "must be HOST:PORT"),
        ({"address": "a b:1"}, "without blanks"),
        ({"options": {"num_cpus": 2}}, "write 'cpus'"),
        ({"options": {"max_restarts": 3}}, "no actor of ours is started twice"),
        ({"options": {"name": "x"}}, "bequeath writes it itself"),
        ({"options": {"two words": 1}}, "which is no option of an actor"),
        ({"options": [1]}, "must be names with their values"),
        ({"runtimeEnv": {"env_vars": {1: "x"}}}, "which must be a text"),
        ({"runtimeEnv": {"x": float("inf")}}, "which JSON cannot carry"),
        ({"gpus": 1.5}, "a share of one GPU"),
        ({"cpus": 0}, "more than nothing"),
        ({"wallTime": "0s"}, "wallTime"),
        ({"wallTime": "5s"}, "is too short for a trial to begin there"),
        ({"sharedFolder": "/nowhere"}, "is no folder that can be written to"),
        ({"headAddress": "a b"}, "must be HOST or HOST:PORT"),
        ({"memory": 64}, "'trainingService.memory' is less than 1 MiB"),
        ({"address": "http://a:1"}, "must be HOST:PORT, ray://HOST:PORT, auto or start"),
        ({"address": "a:99999999"}, "must be HOST:PORT, ray://HOST:PORT, auto or start"),
        ({"trialPython": "a\0b"}, "'trainingService.trialPython' must be one line"),
        ({"sharedFolder": "/" + 5000 * "a"}, "'trainingService.sharedFolder' is no folder that"),
        ({"address": "start", "actorResources": {"tpu": 1}}, "is started for the experiment lacks"),
        ({"python": "/nowhere/python"}, "is no program on this machine"),
        ({"environment": {"KEY": "env:NOT_SET_HERE"}}, "NOT_SET_HERE"),
    ],
)
def test_what_is_wrong_is_said(keys: dict[str, Any], text: str, tmp_path: Path) -> None:
    assert text in refusal(tmp_path, **keys)
