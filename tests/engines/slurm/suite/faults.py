"""Whatever may happen to a cluster while trials run there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dispatcher.conformance.rig import Rig
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import EndReason
from tests.support.processes import wait_until
from tests.support.slurm_cluster import CONTROLLER, SlurmCluster

Folders = Callable[..., Any]

AWAY = "Unable to contact slurm controller"


@pytest.fixture
def rig_of(new_folder: Folders, cluster: SlurmCluster) -> Iterator[Callable[..., Rig]]:
    """Heads over one job anywhere in the cluster, ended afterwards; they leave nothing there."""
    rigs: list[Rig] = []

    def make(nodes: int = 1, **keys: Any) -> Rig:
        section = {"platform": "slurm", "partition": "low", "cpus": 1, "wallTime": "1h"}
        section |= {"headAddress": "127.0.0.1", **keys}
        rigs.append(Rig(new_folder(trainingService=section, trialNodes=nodes)))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close(leave_running=False)
    wait_until(lambda: not jobs(cluster), "nothing of ours is left")


def jobs(cluster: SlurmCluster) -> dict[str, str]:
    """The numbers of our jobs that have not ended → their nodes."""
    listed = cluster.run("squeue", "--noheader", "--format=%i|%j|%N")
    rows = [line.split("|") for line in listed.splitlines()]
    return {number: node for number, name, node in rows if name.startswith("conforma")}


def reasons(rig: Rig) -> list[str]:
    """What was said of waits, newest last."""
    return [each.reason for each in rig.events if isinstance(each, e.WorkerWaits)]


def losses(rig: Rig) -> list[e.WorkerLost]:
    return [each for each in rig.events if isinstance(each, e.WorkerLost)]


def ends_without_blame(rig: Rig, trial: int) -> None:
    """Wait until the trial has ended by its own agent's word, or with its worker."""
    seen = rig.wait(lambda: [*rig.events_of(trial, e.AttemptEnded), *losses(rig)], "it has ended")
    for each in seen:
        if isinstance(each, e.WorkerLost):
            assert each.planned, each
        else:
            assert each.reason in (EndReason.LOST, EndReason.PREEMPTED), each
    rig.wait(lambda: losses(rig), "its worker is lost")


def rejoins(rig: Rig, worker: WorkerId) -> None:
    """Wait until it has joined once more."""
    rig.events = [each for each in rig.events if not isinstance(each, e.WorkerJoined)]
    assert rig.joined(worker).holds == ()


def test_a_controller_that_is_away_costs_nothing(
    rig_of: Callable[..., Rig], cluster: SlurmCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """What runs goes on, trials begin and end, and nobody is lost. Mutation: a list that cannot be
    had is an empty one."""
    rig = rig_of()
    rig.launch()
    worker = rig.workers[0]
    before = jobs(cluster)
    cluster.save(*before)
    cluster.kill(CONTROLLER)
    try:
        for trial in (1, 2, 3):
            rig.start(worker, trial, "look")
            rig.end(trial)
        rig.wait(lambda: AWAY in caplog.text, "the controller was missed")
    finally:
        cluster.start(CONTROLLER)
    rig.start(worker, 4, "look")
    rig.end(4)
    assert not losses(rig)
    wait_until(lambda: jobs(cluster) == before, "it is the same job")


def test_what_is_asked_for_while_the_controller_is_away_comes_later(
    rig_of: Callable[..., Rig], cluster: SlurmCluster
) -> None:
    rig = rig_of()
    worker = rig.workers[0]
    cluster.kill(CONTROLLER)
    try:
        rig.perform(a.LaunchWorker(worker))
        rig.wait(lambda: any(AWAY in each for each in reasons(rig)), "the reason is shown")
    finally:
        cluster.start(CONTROLLER)
    rig.joined(worker)
    assert not losses(rig)
    assert len(jobs(cluster)) == 1


def test_a_node_without_power_is_lost_without_blame(
    rig_of: Callable[..., Rig], cluster: SlurmCluster
) -> None:
    """And the next job runs on another one."""
    rig = rig_of(options={"exclude": "n2"})
    rig.launch()
    worker = rig.workers[0]
    rig.start(worker, 1, "wait")
    (node,) = jobs(cluster).values()
    cluster.crash(node)
    try:
        (lost, *_) = rig.wait(lambda: losses(rig), "the node is lost")
        assert lost.planned, lost
        assert "NODE_FAIL" in lost.reason
        rejoins(rig, worker)
        rig.start(worker, 2, "look")
        rig.end(2)
        assert node not in jobs(cluster).values()
    finally:
        cluster.start(node)


def test_a_trial_of_two_nodes_ends_with_the_first_that_dies(
    rig_of: Callable[..., Rig], cluster: SlurmCluster
) -> None:
    """Rank 0 speaks for both while they live; its job is cancelled without one of them."""
    rig = rig_of(nodes=2, options={"nodelist": "n1,n2"})
    rig.relaunching = False
    rig.launch()
    (worker,) = rig.workers
    rig.start(worker, 1, "finish")
    assert rig.end(1).reason is EndReason.FINISHED
    assert rig.final(1)["default"] == 1.5
    rig.start(worker, 2, "wait")
    rig.first_number(2)
    cluster.crash("n2")
    try:
        ends_without_blame(rig, 2)
        rig.wait(lambda: not jobs(cluster), "nothing of ours is left")
    finally:
        cluster.start("n2")


def test_a_job_that_an_administrator_cancels_is_a_loss_that_says_so(
    rig_of: Callable[..., Rig], cluster: SlurmCluster
) -> None:
    rig = rig_of()
    rig.launch()
    worker = rig.workers[0]
    (number,) = jobs(cluster)
    cluster.run("scancel", number)
    (lost, *_) = rig.wait(lambda: losses(rig), "its job is gone")
    assert "cancelled" in lost.reason
    rejoins(rig, worker)


def test_a_job_that_an_administrator_requeues_is_not_begun_anew(
    rig_of: Callable[..., Rig], cluster: SlurmCluster
) -> None:
    """Its place was taken back; the next one is another job. Mutation: the second life of a job
    runs trials under the ticket of the first."""
    rig = rig_of()
    rig.launch()
    worker = rig.workers[0]
    rig.start(worker, 1, "wait")
    rig.wait(lambda: rig.events_of(1, e.AttemptStarted), "a trial runs")
    (number,) = jobs(cluster)
    cluster.run("scontrol", "update", f"JobId={number}", "Requeue=1")
    cluster.run("scontrol", "requeue", number)
    (lost, *_) = rig.wait(lambda: losses(rig), "its place is taken back")
    assert lost.planned, lost
    rejoins(rig, worker)
    rig.wait(lambda: number not in jobs(cluster), "the first one is cancelled")
    rig.start(worker, 2, "look")
    rig.end(2)
    assert len(jobs(cluster)) == 1


def test_what_slurm_refuses_is_said_in_its_words(rig_of: Callable[..., Rig]) -> None:
    """Before anything is submitted twice."""
    rig = rig_of(partition="nosuch")
    rig.perform(a.LaunchWorker(rig.workers[0]))
    (lost, *_) = rig.wait(lambda: losses(rig), "it is refused")
    assert "Invalid partition name specified" in lost.reason
    assert lost.hopeless
