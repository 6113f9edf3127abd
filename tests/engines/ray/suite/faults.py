"""Whatever may happen to a cluster while trials run there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from dispatcher.conformance.rig import Rig
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import EndReason
from dispatcher.platforms.ray.section import RayServiceConfig
from dispatcher.platforms.registry import platform_of
from tests.engines.ray.suite.conftest import section
from tests.support.processes import wait_until
from tests.support.ray_cluster import CLIENTS, VERSION, RayCluster

#: The end of an actor of ours, by somebody else: ``CODE ADDRESS``, as ``ray.kill`` does it.
_KILL = """
import sys, ray
ray.init(sys.argv[1], namespace="bequeath", log_to_driver=False)
for name in ray.util.list_named_actors():
    ray.kill(ray.get_actor(name), no_restart=True)
"""

#: Prints the placement groups that hold places, or wait for them.
_GROUPS = """
import sys, ray
ray.init(sys.argv[1], log_to_driver=False)
for group in ray.util.placement_group_table().values():
    if group["state"] != "REMOVED":
        print(group["state"], group["name"])
"""


@pytest.fixture
def rig_of(new_folder: Callable[..., Any], cluster: RayCluster) -> Iterator[Callable[..., Rig]]:
    """Heads over one actor on one of three nodes, ended afterwards; they leave nothing there."""
    rigs: list[Rig] = []

    def make(nodes: int = 1, **keys: Any) -> Rig:
        service = section(cluster, "few", **{"allocations": 1, **keys})
        rigs.append(Rig(new_folder(trainingService=service, trialNodes=nodes)))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close(leave_running=False)
    wait_until(lambda: not cluster.actors(), "nothing of ours is left")


def losses(rig: Rig) -> list[e.WorkerLost]:
    return [each for each in rig.events if isinstance(each, e.WorkerLost)]


def kill_driver() -> psutil.Process:
    """Kill the one driver that there is."""
    (driver,) = [
        each
        for each in psutil.Process().children(recursive=True)
        if "It is run by a Python that has Ray" in " ".join(each.cmdline())
    ]
    driver.kill()
    return driver


def rejoins(rig: Rig, worker: WorkerId) -> None:
    """Wait until it has joined once more."""
    rig.events = [each for each in rig.events if not isinstance(each, e.WorkerJoined)]
    assert rig.joined(worker).holds == ()


def test_a_node_without_power_is_lost_without_blame(
    rig_of: Callable[..., Rig], cluster: RayCluster
) -> None:
    """And the next actor runs on another one."""
    rig = rig_of()
    rig.launch()
    worker = rig.workers[0]
    rig.start(worker, 1, "wait")
    (node,) = cluster.nodes_with_agents()
    cluster.crash(node)
    try:
        (lost, *_) = rig.wait(lambda: losses(rig), "the node is lost")
        assert lost.planned, lost
        assert "node" in lost.reason
        rejoins(rig, worker)
        rig.start(worker, 2, "look")
        rig.end(2)
        assert node not in cluster.actors().values()
    finally:
        cluster.start(node)
        cluster.wait_for_nodes()


def test_a_trial_of_two_nodes_ends_with_the_first_that_dies(
    rig_of: Callable[..., Rig], cluster: RayCluster
) -> None:
    """A node each, for as long as they live, whatever becomes of the driver; neither group nor
    actor is left of them. Mutations: both on one node; the group is detached, or the driver's."""
    rig = rig_of(nodes=2)
    rig.relaunching = False
    rig.launch()
    (worker,) = rig.workers
    rig.start(worker, 1, "finish")
    assert rig.end(1).reason is EndReason.FINISHED
    assert rig.final(1)["default"] == 1.5
    kill_driver()
    rig.start(worker, 2, "wait")
    rig.first_number(2)
    nodes = {actor.partition("/")[2]: node for actor, node in cluster.actors().items()}
    assert nodes["0"] != nodes["1"]
    assert not losses(rig)
    assert not rig.events_of(2, e.AttemptEnded)
    cluster.crash(nodes["1"])
    try:
        (lost, *_) = rig.wait(lambda: losses(rig), "its place is lost")
        assert lost.planned, lost
        for end in rig.events_of(2, e.AttemptEnded):
            assert end.reason in (EndReason.LOST, EndReason.PREEMPTED), end
        wait_until(lambda: not cluster.actors(), "no actor is left")
        wait_until(lambda: not cluster.run(_GROUPS), "no group is left")
    finally:
        cluster.start(nodes["1"])
        cluster.wait_for_nodes()


def test_an_actor_that_somebody_kills_takes_agent_and_trial_along(
    rig_of: Callable[..., Rig], cluster: RayCluster
) -> None:
    """Ray knows nothing of either, and gives their place to the next one. Mutation: the agent
    outlives its actor."""
    rig = rig_of()
    rig.launch()
    worker = rig.workers[0]
    rig.start(worker, 1, "wait")
    trial = psutil.Process(rig.first_number(1))
    cluster.run(_KILL)
    (lost, *_) = rig.wait(lambda: losses(rig), "its actor is gone")
    assert "ray.kill" in lost.reason, lost
    assert lost.planned, "whoever did that had a reason, and it is no fault of the agent's"
    wait_until(lambda: not trial.is_running(), "the trial has ended")
    rejoins(rig, worker)
    rig.start(worker, 2, "look")
    rig.end(2)


def test_a_preempted_node_is_lost_without_blame(
    rig_of: Callable[..., Rig], cluster: RayCluster
) -> None:
    rig = rig_of()
    rig.launch()
    worker = rig.workers[0]
    (node,) = cluster.actors().values()
    cluster.preempt(node)
    try:
        (lost, *_) = rig.wait(lambda: losses(rig), "the node is lost")
        assert lost.planned, lost
        assert "preempted" in lost.reason
        rejoins(rig, worker)
        assert set(cluster.actors().values()) - {node}, "on another one"
    finally:
        cluster.start(node)
        cluster.wait_for_nodes()


def test_a_node_that_runs_out_of_memory_says_so(
    rig_of: Callable[..., Rig], cluster: RayCluster
) -> None:
    """Ray's monitor ends what runs there; this one takes little for too much."""
    node = "s1"
    cluster.crash(node)
    # Until then actors may be sent to the one that is dead.
    wait_until(lambda: node not in cluster.nodes(), "Ray knows that it is gone")
    cluster.start(node, RAY_memory_usage_threshold="0.01", RAY_memory_monitor_refresh_ms="250")
    try:
        rig = rig_of(actorResources={f"own-{node}": 0.5})
        rig.perform(a.LaunchWorker(rig.workers[0]))
        (lost, *_) = rig.wait(lambda: losses(rig), "it is lost")
        assert lost.reason.startswith("its allocation ran out of memory"), lost
        assert "low on memory" in lost.reason
        rig.close(leave_running=False)
    finally:
        cluster.crash(node)
        cluster.start(node)
        cluster.wait_for_nodes()


def test_a_driver_that_is_killed_costs_nothing(rig_of: Callable[..., Rig]) -> None:
    """The next one takes actors up. Mutation: they end with the driver, or are lost."""
    rig = rig_of()
    rig.launch()
    worker = rig.workers[0]
    driver = kill_driver()
    rig.start(worker, 1, "look")
    rig.end(1)
    wait_until(lambda: not driver.is_running(), "it has ended")
    rig.start(worker, 2, "look")
    rig.end(2)
    assert not losses(rig)


def test_a_request_that_no_node_can_meet_is_explained(
    rig_of: Callable[..., Rig], cluster: RayCluster
) -> None:
    """Also by what an autoscaler says; and a limit turns it into a place that cannot be had."""
    # Reasons are asked for each 15 s, and there are three of them.
    limited = {"min": 1, "max": 1, "limit": "50s"}
    rig = rig_of(actorResources={"unicorn": 2}, allocations=limited)
    worker = rig.workers[0]
    rig.perform(a.LaunchWorker(worker))

    def waits(text: str) -> bool:
        reasons = [x.reason for x in rig.events if isinstance(x, e.WorkerWaits)]
        return any(text in reason for reason in reasons)

    none_has = "no node of the cluster has 1 CPU, 2 unicorn"
    rig.wait(lambda: waits(none_has), "the reason is shown")
    cluster.autoscaler_says({"horn": 1.0}, ("unicorns", "no unicorns in this zone"))
    rig.wait(lambda: waits("could not start 1 unicorns: no unicorns in this zone"), "and another")
    cluster.autoscaler_says({"unicorn": 2.0, "CPU": 1.0}, ("unicorns", "none"))
    never = "no available node types can fulfill resource requests {'CPU': 1, 'unicorn': 2}"
    rig.wait(lambda: waits(never), "and that of a request that can never be met")
    (lost, *_) = rig.wait(lambda: losses(rig), "it is given up")
    assert lost.hopeless
    assert never in lost.reason


def test_an_agent_that_cannot_start_says_why(rig_of: Callable[..., Rig]) -> None:
    rig = rig_of(trialPython="/nowhere/python")
    rig.perform(a.LaunchWorker(rig.workers[0]))
    (lost, *_) = rig.wait(lambda: losses(rig), "it is lost")
    assert "/nowhere/python" in lost.reason, lost


def test_a_place_where_nobody_listens_is_no_cluster(rig_of: Callable[..., Rig]) -> None:
    rig = rig_of(address="127.0.0.1:6378")
    rig.perform(a.LaunchWorker(rig.workers[0]))
    (lost, *_) = rig.wait(lambda: losses(rig), "it is lost")
    assert lost.hopeless
    assert "no Ray cluster answers at 127.0.0.1:6378" in lost.reason


def test_a_look_at_the_cluster_before_anything_starts(cluster: RayCluster) -> None:
    keys = section(cluster, "few", gpus=4)
    service = RayServiceConfig.model_validate(keys)
    here, actor = platform_of(service).inspect(service)
    assert here.text == f"Ray {VERSION} at {cluster.address}, {len(cluster.nodes())} nodes"
    assert "no node has 1 CPU, 4 GPU, 1 few" in actor.text


def test_from_outside_the_cluster_by_its_server_for_clients(rig_of: Callable[..., Rig]) -> None:
    """As with KubeRay, where the address is all there is."""
    rig = rig_of(address=CLIENTS, headAddress="127.0.0.1")
    rig.launch()
    rig.start(rig.workers[0], 1, "look")
    rig.end(1)
    assert not losses(rig)
