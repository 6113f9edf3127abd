"""A look at a cluster before anything starts there."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.findings import Severity
from dispatcher.platforms.ray.inspection import inspect_cluster
from dispatcher.platforms.ray.section import RayServiceConfig


class ScriptedDriver:
    def __init__(self, *nodes: dict[str, float]) -> None:
        self.nodes = nodes
        self.closed = False

    def ask(self, method: str, **_: object) -> Any:
        assert method == "describe", "nothing is asked for"
        if not self.nodes:
            raise PassingBackendError("no Ray cluster answers")
        addresses = ["203.0.113.7"] * len(self.nodes)
        return {"version": "2.60.0", "nodes": self.nodes, "free": {}, "addresses": addresses}

    def close(self) -> None:
        self.closed = True


def section(**keys: Any) -> RayServiceConfig:
    return RayServiceConfig.model_validate({"platform": "ray", **keys})


def test_a_cluster_that_has_what_is_asked_for() -> None:
    driver = ScriptedDriver({"CPU": 1.0}, {"CPU": 8.0, "GPU": 1.0})
    cluster, actor = inspect_cluster(section(gpus=1, cpus=4), driver)
    assert (cluster.severity, cluster.text) == (Severity.OK, "Ray 2.60.0 at auto, 2 nodes")
    assert (actor.severity, actor.text) == (Severity.OK, "a node has 4 CPU, 1 GPU")
    assert driver.closed


def test_one_that_has_it_not_yet() -> None:
    """No fault: an autoscaler may bring a node."""
    _, actor = inspect_cluster(section(gpus=2), ScriptedDriver({"CPU": 8.0, "GPU": 1.0}))
    assert actor.severity is Severity.NOTE
    assert actor.text == "no node has 1 CPU, 2 GPU: an actor waits until one comes"
    assert actor.keys == (("gpus",),), "of all that is asked for, what no node has"


def test_one_that_is_started_needs_ray_alone() -> None:
    (cluster,) = inspect_cluster(section(address="start", gpus=9), ScriptedDriver({"CPU": 1.0}))
    assert cluster.severity is Severity.OK
    assert "a cluster of this machine alone is started for it" in cluster.text


def test_none_is_an_error_and_leaves_no_driver() -> None:
    driver = ScriptedDriver()
    with pytest.raises(PassingBackendError, match="no Ray cluster answers"):
        list(inspect_cluster(section(), driver))
    assert driver.closed


def test_a_loopback_that_is_another_one_on_nodes() -> None:
    """Mutation: nobody hears from agents, since each looks for the head on its own node."""
    found = list(inspect_cluster(section(headAddress="127.0.0.1"), ScriptedDriver({"CPU": 1.0})))
    (ways,) = (each for each in found if each.topic == "ways")
    assert ways.severity is Severity.PROBLEM
    assert "on 203.0.113.7 that is the node itself" in ways.text
    assert ways.keys == (("headAddress",),)
