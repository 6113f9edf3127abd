"""Why an actor waits."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.platforms.ray.waiting import reason_of_autoscaler, reason_of_wait

SMALL, BIG = {"CPU": 2.0, "GPU": 1.0}, {"CPU": 8.0, "memory": 64.0 * 2**30}


@pytest.mark.parametrize(
    "demand, nodes, free, reason",
    [
        ({"CPU": 1}, [], {}, "the cluster has no node"),
        (
            {"CPU": 1, "GPU": 2},
            [SMALL, SMALL],
            {"GPU": 2},
            "no node of the cluster has 1 CPU, 2 GPU; Ray waits for one that has",
        ),
        (
            {"CPU": 4, "GPU": 1},  # some have the one, some the other
            [SMALL, BIG],
            {"CPU": 10, "GPU": 1},
            "no node of the cluster has 4 CPU, 1 GPU; Ray waits for one that has",
        ),
        (
            {"CPU": 1, "GPU": 1},
            [SMALL, SMALL, BIG],
            {"CPU": 4},
            "0 of 2 GPU are free; it asks for 1 CPU, 1 GPU",
        ),
        (
            {"memory": 32 * 2**30},
            [BIG],
            {"memory": 16 * 2**30},
            "16.0 GiB of 64.0 GiB memory are free; it asks for 32.0 GiB memory",
        ),
        ({"CPU": 2}, [SMALL, SMALL], {"CPU": 2}, "Ray has not placed it yet; it asks for 2 CPU"),
    ],
)
def test_it_is_what_lacks(
    demand: Any, nodes: list[Any], free: dict[str, float], reason: str
) -> None:
    assert reason_of_wait(demand, nodes, free) == reason


@pytest.mark.parametrize(
    "nodes, free, reason",
    [
        ([BIG], {}, "no node of the cluster has 1 GPU; Ray waits for one that has"),
        (
            [SMALL, BIG],
            {"GPU": 1},
            "the cluster has 1 node with 1 GPU, and it asks for 3; Ray waits for more",
        ),
        ([SMALL] * 4, {"GPU": 2}, "2 of 4 GPU are free; it asks for 3 nodes with 1 GPU"),
        ([SMALL] * 4, {"GPU": 3}, "Ray has not placed it yet; it asks for 3 nodes with 1 GPU"),
    ],
)
def test_it_is_what_lacks_of_several_nodes(
    nodes: list[Any], free: dict[str, float], reason: str
) -> None:
    assert reason_of_wait({"GPU": 1}, nodes, free, 3) == reason


SAID: dict[str, Any] = {"never": [], "failed": [], "coming": [], "error": ""}


@pytest.mark.parametrize(
    "said, reason",
    [
        ({}, ""),
        ({"never": [{"CPU": 4.0}]}, ""),  # somebody else's
        (
            {"never": [{"GPU": 8.0, "CPU": 1.0}], "coming": [["gpu", 1]]},
            "the autoscaler: no available node types can fulfill resource requests "
            "{'CPU': 1, 'GPU': 8}",
        ),
        (
            {"failed": [["gpu", 2, "InsufficientInstanceCapacity"]]},
            "the autoscaler could not start 2 gpu: InsufficientInstanceCapacity",
        ),
        ({"coming": [["gpu", 2]]}, "the autoscaler starts 2 gpu"),
        (
            {"error": "StandardAutoscaler: no rights"},
            "the autoscaler: StandardAutoscaler: no rights",
        ),
    ],
)
def test_what_an_autoscaler_says(said: dict[str, Any], reason: str) -> None:
    assert reason_of_autoscaler({"CPU": 1.0, "GPU": 8.0}, SAID | said) == reason
