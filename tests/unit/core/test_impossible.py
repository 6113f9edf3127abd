"""Needs that no host can ever meet: said before anything waits for them in vain."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, FailReason, Outcome, Phase, TrialState
from dispatcher.core.queue_classes import group_queue
from dispatcher.core.resources import Needs, Offer
from tests.support.cluster import GB, Cluster, gpus
from tests.support.scene import of_kind


@pytest.mark.parametrize(
    "needs, sentence",
    [
        (
            Needs(gpus=8),
            "each trial needs 8 GPUs, which no worker can ever give: the best, b, has 4 GPUs",
        ),
        (
            Needs(gpus=2, gpu_memory_bytes=100 * GB),
            "each trial needs 2 GPUs of at least 100 GB, which no worker can ever give: the best, "
            "a, has no GPU of that size",
        ),
        (
            Needs(gpus=0.5, cpus=64, memory_bytes=2 * GB),
            "each trial needs 0.5 of a GPU, 64 CPUs and 2 GB of memory, which no worker can ever "
            "give: the best, b, has 4 GPUs, 16 CPUs and 4 GB of memory",
        ),
        (
            Needs(custom=(("licence", 3.0),)),
            "each trial needs 3 licence, which no worker can ever give: the best, b, has 2 licence",
        ),
    ],
    ids=["gpus", "their memory", "cpus", "by name"],
)
def test_an_experiment_whose_trials_fit_nowhere_fails_before_anything_starts(
    needs: Needs, sentence: str
) -> None:
    lab = Cluster({}, workers=2, needs=needs)
    lab.join("a", Offer(gpus("a", 1), 8.0, 4 * GB))
    assert lab.state.phase is Phase.RUNNING, "the other one may have it"
    waits = lab.submit()
    out = lab.join("b", Offer(gpus("b", 4), 16.0, 4 * GB, (("licence", 2.0),)))
    assert (lab.state.phase, lab.state.phase_reason) == (Phase.FAILED, sentence)
    assert of_kind(out, a.Finish)
    assert lab.trial(waits).attempt == 0


def test_a_host_that_cannot_be_had_is_not_waited_for() -> None:
    lab = Cluster({}, workers=2, needs=Needs(gpus=8))
    lab.join("a", 4)
    lab.say(e.WorkerLost(WorkerId("b"), "the GPU 9 of gpuIndices is not there", hopeless=True))
    assert lab.state.phase is Phase.FAILED
    assert "the only one, a, has 4 GPUs" in lab.state.phase_reason


def test_a_host_that_is_lost_or_in_trouble_for_now_counts() -> None:
    """Mutation: what a lost host had is forgotten; devices in trouble are not counted."""
    lab = Cluster({}, workers=2, needs=Needs(gpus=2))
    one, two = gpus("a", 2)
    lab.join("a", Offer((one, replace(two, trouble="used by others"))))
    lab.say(e.WorkerLost(WorkerId("a"), "gone"))
    lab.join("b", 1)
    lab.offers("b", Offer())
    assert lab.state.phase is Phase.RUNNING
    lab.join("a", Offer((one,)))
    assert lab.state.phase is Phase.RUNNING, "it had two: a reset may bring it back"
    lab.say(e.HeadStarted(2))
    lab.join("a", Offer((one,)))
    lab.join("b", 1)
    assert lab.state.phase is Phase.FAILED, "each has said anew what it has"


def test_a_host_that_does_not_say_may_have_everything() -> None:
    lab = Cluster({"a": None}, needs=Needs(gpus=8))
    assert lab.state.phase is Phase.RUNNING
    lab.offers("a", Offer())
    assert lab.state.phase is Phase.FAILED


def test_one_trial_that_fits_nowhere_ends_alone_as_one_that_could_not_start() -> None:
    lab = Cluster({"a": 2}, trial_retries=3)
    before = lab.state.next_id
    out = lab.say(e.TrialSubmitted("{}", "t/x", None, Needs(gpus=3)))
    trial = lab.trial(before)
    (told,) = of_kind(out, a.ReportTrial)
    assert told.trial == before
    assert told.text == (
        f"trial {before} needs 3 GPUs, which no worker can ever give: the only one, a, has 2 GPUs"
    )
    assert (trial.state, trial.outcome) == (TrialState.DELIVERING, Outcome.FAILED)
    assert (trial.attempt, trial.failures, trial.refusal) == (0, 0, told.text)
    assert "could not start" in next(iter(lab.state.failures.causes.values())).text
    child = lab.state.next_id
    lab.say(e.TrialSubmitted("{}", "t/y", "t/x"))
    lab.deliver(before)
    lab.deliver(child)
    verdict = lab.trial(child).verdict
    assert verdict is not None
    assert (verdict.reason, verdict.chain) == (FailReason.FAILED, (before,))
    assert lab.state.phase is Phase.RUNNING
    lab.assert_replays()


def test_a_trial_waits_with_its_needs_until_all_hosts_have_said_what_they_have() -> None:
    lab = Cluster({"a": 1}, workers=2)
    waits, other = lab.submit(gpus=2), lab.submit(gpus=4)
    assert lab.trial(waits).state is TrialState.QUEUED
    lab.join("b", 2)
    assert lab.where(waits) == "b"
    assert lab.trial(other).state is TrialState.DELIVERING


def test_what_comes_back_from_its_back_off_is_judged_at_once() -> None:
    """Mutation: it is judged by the next event, for which nobody may come for a long time."""
    lab = Cluster({"a": 2}, trial_retries=1, retry_backoff_s=10.0)
    trial = lab.submit(gpus=2)
    lab.exit(trial, EndReason.FAILED, 1)
    assert lab.trial(trial).state is TrialState.BACKOFF
    lab.say(e.HeadStarted(2), e.TunerHostReady())
    lab.join("a", 1)
    lab.now += 60.0
    (refused,) = of_kind(lab.say(e.Tick()), a.ReportTrial)
    assert refused.trial == trial
    assert lab.trial(trial).state is TrialState.DELIVERING
    lab.assert_replays()


def test_a_child_is_judged_by_the_hosts_that_reach_its_parents_weights() -> None:
    lab = Cluster({}, workers=2)
    lab.join("a", 1, domain="x")
    parent = lab.submit()
    lab.leave(parent)
    lab.join("b", 8, domain="y")
    child = lab.submit(gpus=8, parent=parent)
    assert "the only one, a, has 1 GPU" in lab.trial(child).refusal
    assert lab.where(lab.submit(gpus=8)) == "b"


def test_many_trials_that_fit_nowhere_end_the_experiment_as_all_failures_do() -> None:
    lab = Cluster({"a": 1}, max_failed_in_a_row=3)
    for _ in range(3):
        lab.deliver(lab.submit(gpus=2))
    assert lab.state.phase is Phase.FAILED
    assert "3 trials failed in a row" in lab.state.phase_reason
    assert "could not start" in lab.state.phase_reason


def test_nothing_is_judged_while_the_experiment_ends() -> None:
    lab = Cluster({"a": 1}, workers=2)
    runs = lab.submit()
    waits = lab.submit(gpus=2)
    lab.say(e.StopRequested(e.StopKind.DRAIN, "enough"))
    lab.join("b", 1)
    assert lab.trial(waits).state is TrialState.QUEUED
    lab.leave(runs)
    lab.say(e.HeadStarted(2), e.TunerHostReady())
    lab.join("a", 1)
    lab.join("b", 1)
    assert lab.trial(TrialId(waits)).state is TrialState.DELIVERING


def test_they_end_in_the_order_of_the_queue_whatever_was_in_it_before() -> None:
    """A restart tells the lines of the queue apart anew. Mutation: line by line, as they came."""
    lab = Cluster({"a": 1}, workers=2)
    first, second, third = lab.submit(gpus=2), lab.submit(gpus=4), lab.submit(gpus=2)
    lab.say(e.TrialStopRequested(TrialId(first), EndReason.KILLED))
    restarted = deepcopy(lab.state)
    restarted.queue_classes = group_queue(restarted)
    event = e.WorkerJoined(WorkerId("b"), 64, offer=Offer(gpus("b", 1)))
    again = core.apply(restarted, event, restarted.now).actions
    out = lab.say(event)
    assert out == again
    assert [told.trial for told in of_kind(out, a.ReportTrial)] == [second, third]
