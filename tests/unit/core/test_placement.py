"""Who goes where: devices by id, shares, packing, cost, locality, priorities, domains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import AttemptState, EndReason, TrialState
from dispatcher.core.resources import Device, Needs, Offer, WorkerRules
from tests.support.cluster import GB, Cluster, gpus, mig
from tests.support.scene import of_kind


def test_a_trial_is_given_devices_by_id() -> None:
    lab = Cluster({"a": 4})
    out = lab.say(e.TrialSubmitted("{}", needs=Needs(gpus=2, cpus=3, memory_bytes=5)))
    (start,) = of_kind(out, a.StartAttempt)
    assert start.devices == ("GPU-a-0", "GPU-a-1")
    assert (start.cpus, start.memory_bytes, start.device_share) == (3, 5, 0.0)


def test_devices_are_one_trials_own_until_it_is_over() -> None:
    lab = Cluster({"a": 2})
    first, second, third = (lab.submit(gpus=1) for _ in range(3))
    assert (lab.held(first), lab.held(second)) == (("a-0",), ("a-1",))
    assert lab.where(third) is None
    (start,) = lab.leave(first)
    assert (start.trial, start.devices) == (third, ("GPU-a-0",))


def test_shares_fill_one_device_before_the_next_is_begun() -> None:
    lab = Cluster({"a": 2})
    held = [lab.held(lab.submit(gpus=share)) for share in (0.5, 0.25, 0.25, 0.5, 0.75)]
    assert held == [("a-0",), ("a-0",), ("a-0",), ("a-1",), ()]
    assert of_kind(lab.leave(lab.submit(gpus=0.1)), a.StartAttempt) == []


@pytest.mark.parametrize("share, most", [(0.1, 10), (1 / 3, 3), (0.34, 2), (0.7, 1)])
def test_shares_of_a_device_are_at_most_all_of_it(share: float, most: int) -> None:
    lab = Cluster({"a": 1})
    trials = [lab.submit(gpus=share) for _ in range(most + 2)]
    assert sum(lab.where(trial) is not None for trial in trials) == most
    (start,) = lab.leave(trials[0])
    assert start.device_share == share


def test_no_more_than_so_many_trials_share_a_device() -> None:
    lab = Cluster({"a": 1}, worker_rules={"a": WorkerRules(trials_per_device=2)})
    assert [lab.where(lab.submit(gpus=0.1)) for _ in range(3)] == ["a", "a", None]


def test_as_in_nni_trials_of_a_whole_gpu_share_it_if_the_file_says_so() -> None:
    lab = Cluster({"a": 2}, worker_rules={"a": WorkerRules(trials_per_device=2)})
    out = [lab.held(lab.submit(gpus=1)) for _ in range(5)]
    assert out == [("a-0",), ("a-0",), ("a-1",), ("a-1",), ()]
    assert lab.replayed().workers[WorkerId("a")].used == lab.state.workers[WorkerId("a")].used


def test_small_trials_go_to_the_fullest_host_on_which_they_fit() -> None:
    lab = Cluster({"a": 8, "b": 8, "c": 2})
    assert lab.where(lab.submit(gpus=1)) == "c"
    assert lab.where(lab.submit(gpus=7)) == "a"
    assert [lab.where(lab.submit(gpus=1)) for _ in range(3)] == ["a", "c", "b"]


def test_a_share_goes_where_a_device_is_begun_rather_than_to_the_fullest_host() -> None:
    lab = Cluster({"a": 8, "b": 1})
    assert lab.where(lab.submit(gpus=0.5)) == "b"
    assert lab.where(lab.submit(gpus=0.9)) == "a"
    assert [lab.where(lab.submit(gpus=0.1)) for _ in range(2)] == ["b", "b"]


def test_a_trial_that_takes_a_slot_only_goes_to_the_emptiest_host() -> None:
    lab = Cluster({"a": 0, "b": 8}, each=2)
    assert [lab.where(lab.submit()) for _ in range(5)] == ["a", "b", "a", "b", None]


def test_memory_of_devices() -> None:
    small, large = gpus("a", 2, memory_gb=16), gpus("b", 1, memory_gb=80)
    lab = Cluster({"a": Offer(small), "b": Offer(large)})
    assert lab.where(lab.submit(gpus=1, gpu_memory_bytes=40 * GB)) == "b"
    waits = lab.submit(gpus=1, gpu_memory_bytes=40 * GB)
    assert lab.where(waits) is None
    assert lab.where(lab.submit(gpus=2, gpu_memory_bytes=16 * GB)) == "a"


def test_a_gpu_that_is_cut_is_no_place_and_its_parts_are() -> None:
    whole, cut = gpus("a", 2)
    lab = Cluster({"a": Offer((whole, cut, *mig(cut, 2)))})
    parts = [lab.trial(lab.submit(gpus=1)).devices for _ in range(4)]
    assert parts == [("MIG-GPU-a-1-0",), ("MIG-GPU-a-1-1",), ("GPU-a-0",), ()]


def test_a_trial_of_several_gpus_gets_whole_ones() -> None:
    one, two, cut = gpus("a", 3)
    lab = Cluster({"a": Offer((one, two, cut, *mig(cut, 4)))})
    assert lab.held(lab.submit(gpus=2)) == ("a-0", "a-1")
    assert lab.submit(gpus=3)
    assert lab.trial(lab.state.next_id - 1).refusal


@pytest.mark.parametrize(
    "offer, needs",
    [
        (Offer(cpus=8.0), Needs(cpus=4)),
        (Offer(memory_bytes=64 * GB), Needs(memory_bytes=32 * GB)),
        (Offer(custom=(("licence", 2.0), ("tape", 9.0))), Needs(custom=(("licence", 1.0),))),
    ],
    ids=["cpus", "memory", "by name"],
)
def test_what_is_counted_suffices_for_two(offer: Offer, needs: Needs) -> None:
    lab = Cluster({"a": offer})
    first, second, third = (lab.submit(needs) for _ in range(3))
    assert [lab.where(t) for t in (first, second, third)] == ["a", "a", None]
    assert lab.where(lab.submit()) == "a", "a slot is all that this one takes"
    (start,) = lab.leave(second)
    assert start.trial == third


def test_what_a_host_does_not_count_is_not_asked_of_it() -> None:
    lab = Cluster({"a": Offer()})
    assert lab.where(lab.submit(cpus=1000, memory_bytes=1 << 60)) == "a"


def test_cheaper_hosts_are_filled_first() -> None:
    rules = {"a": WorkerRules(cost=2), "b": WorkerRules(cost=0.5)}
    lab = Cluster({"a": 4, "b": 1, "c": 1}, worker_rules=rules)
    assert [lab.where(lab.submit(gpus=1)) for _ in range(3)] == ["c", "b", "a"]
    lab = Cluster({"a": None, "b": None}, worker_rules=rules, each=2)
    assert [lab.where(lab.submit()) for _ in range(3)] == ["b", "b", "a"]


def test_higher_priorities_go_first_and_equals_as_they_came() -> None:
    lab = Cluster({"a": 1})
    runs = lab.submit(gpus=1)
    low, high, high_too, usual = (lab.submit(gpus=1, priority=p) for p in (-1, 5, 5, 0))
    order = []
    for _ in range(4):
        (start,) = lab.leave(runs)
        runs = start.trial
        order.append(runs)
    assert order == [high, high_too, usual, low]


def test_a_child_goes_where_its_parents_weights_lie_already() -> None:
    lab = Cluster({"a": None, "b": None}, each=2)
    parent = lab.submit()
    lab.leave(parent)
    weights = lab.trial(parent).weights
    assert weights is not None
    lab.offers("b", Offer(cached=("else", weights.digest)))
    assert lab.where(lab.submit(parent=parent)) == "b"
    assert lab.where(lab.submit()) == "a"
    lab.offers("b", Offer())
    assert lab.where(lab.submit(parent=parent)) == "a", "it is not cached there any more"


def test_room_for_large_trials_is_worth_more_than_a_copy_of_weights() -> None:
    lab = Cluster({"a": 2, "b": 8})
    parent = lab.submit(gpus=0.5)
    lab.leave(parent)
    weights = lab.trial(parent).weights
    assert weights is not None
    lab.submit(gpus=0.5)
    lab.offers("b", Offer(gpus("b", 8), cached=(weights.digest,)))
    assert lab.where(lab.submit(gpus=0.5, parent=parent)) == "a", "it breaks into no device there"
    assert lab.where(lab.submit(gpus=1, parent=parent)) == "b", "there it is one of equals"


@pytest.mark.parametrize("said_by", ["the file", "the backend"])
def test_a_child_runs_where_its_parents_weights_can_be_read(said_by: str) -> None:
    lab = Cluster({}, workers=2)
    if said_by == "the file":
        rules = {"a": WorkerRules(domain="x")}
        lab.say(e.SettingsUpdated(replace(lab.settings, worker_rules=rules)))
    lab.join("a", None, 1, domain="" if said_by == "the file" else "x")
    parent = lab.submit()
    lab.join("b", None, 4)
    lab.leave(parent)
    busy = lab.submit()
    assert lab.where(busy) == "b", "the emptiest"
    other = lab.submit(parent=parent)
    assert lab.where(other) == "a"
    child = lab.submit(parent=parent)
    assert lab.where(child) is None, "there is room on b, where the weights cannot be read"
    (start,) = lab.leave(other)
    assert (start.trial, start.worker) == (child, "a")
    assert lab.where(lab.submit(parent=busy)) is None or lab.trial(busy).verdict is None


def test_who_has_no_name_for_its_domain_shares_one_with_all_others() -> None:
    lab = Cluster({"a": None, "b": None}, each=1)
    parent = lab.submit()
    lab.leave(parent)
    assert {lab.where(lab.submit(parent=parent)) for _ in range(2)} == {"a", "b"}


def test_what_a_retry_commits_counts_not_what_the_first_attempt_had() -> None:
    lab = Cluster({}, workers=2, trial_retries=1, retry_backoff_s=0.0, retries={"failed": 1})
    lab.join("a", None, 1, domain="x")
    parent = lab.submit()
    lab.publish(parent)
    assert lab.trial(parent).domain == "x"
    lab.join("b", None, 1, domain="y")
    lab.exit(parent, EndReason.FAILED)
    lab.wait_until(lab.now + 10)
    assert lab.where(parent) == "b"
    lab.leave(parent)
    assert lab.trial(parent).domain == "y"


# -- offers that change ------------------------------------------------------------------------


def _with_trouble(device: Device, trouble: str) -> Device:
    return replace(device, trouble=trouble)


def test_nothing_new_goes_to_a_device_in_trouble_and_what_runs_there_goes_on() -> None:
    one, two = gpus("a", 2)
    lab = Cluster({"a": Offer((one, two))})
    runs = lab.submit(gpus=0.5)
    assert lab.held(runs) == ("a-0",)
    lab.offers("a", Offer((_with_trouble(one, "used by others"), two)))
    assert lab.where(runs) == "a"
    assert [lab.held(lab.submit(gpus=0.5)) for _ in range(3)] == [("a-1",), ("a-1",), ()]
    waits = TrialId(lab.state.next_id - 1)
    out = lab.offers("a", Offer((one, two)))
    assert [(s.trial, s.devices) for s in of_kind(out, a.StartAttempt)] == [(waits, ("GPU-a-0",))]


def test_a_device_that_falls_off_the_bus_is_held_until_its_trial_ends() -> None:
    one, two = gpus("a", 2)
    lab = Cluster({"a": Offer((one, two))})
    runs = lab.submit(gpus=1)
    lab.offers("a", Offer((two,)))
    assert lab.state.workers[WorkerId("a")].used.shares == {"GPU-a-0": 1.0}
    other = lab.submit(gpus=1)
    assert lab.held(other) == ("a-1",)
    lab.offers("a", Offer((one, two)))
    assert lab.where(lab.submit(gpus=1)) is None, "it is back, and still held"
    lab.leave(runs)
    assert lab.state.workers[WorkerId("a")].used.shares == {"GPU-a-0": 1.0, "GPU-a-1": 1.0}


def test_what_a_running_attempt_holds_comes_from_the_journal() -> None:
    """A new head does not ask the agent. Mutation: a join forgets what is held."""
    lab = Cluster({"a": 2})
    first, second = lab.submit(gpus=1), lab.submit(gpus=1)
    lab.started(first)
    lab.say(e.HeadStarted(2), e.TunerHostReady())
    holds = ((TrialId(first), 1),)
    out = lab.say(e.WorkerJoined(WorkerId("a"), 64, holds, Offer(gpus("a", 2))))
    (again,) = of_kind(out, a.StartAttempt)
    assert (again.trial, again.devices) == (second, ("GPU-a-1",)), "it had not heard of it"
    assert lab.where(lab.submit(gpus=1)) is None
    lab.assert_replays()


def _rejoined(trial: int, lab: Cluster, *devices: Device) -> list[a.StartAttempt]:
    """The starts that a new head sends to an agent that has not heard of the trial."""
    lab.say(e.HeadStarted(2), e.TunerHostReady())
    assert lab.trial(trial).attempt_state is AttemptState.STARTING
    return of_kind(lab.join("a", Offer(devices)), a.StartAttempt)


@pytest.mark.parametrize("gone", [True, False])
def test_what_nobody_has_heard_of_does_not_begin_on_a_gpu_in_trouble(gone: bool) -> None:
    """It is placed anew, and no retry is spent. Mutation: its start is sent again."""
    one, two = gpus("a", 2)
    lab = Cluster({"a": 2}, placed_anew=True)
    trial = lab.submit(gpus=1)
    assert lab.held(trial) == ("a-0",)
    ails = () if gone else (_with_trouble(one, "used by others"),)
    (start,) = _rejoined(trial, lab, *ails, two)
    assert (start.trial, start.attempt, start.devices) == (trial, 2, ("GPU-a-1",))
    assert lab.state.workers[WorkerId("a")].used.shares == {"GPU-a-1": 1.0}
    record = lab.trial(trial)
    assert (record.failures, record.losses, record.retried) == (0, 0, None)
    lab.assert_replays()


def test_where_no_other_gpu_is_free_it_waits_for_its_own() -> None:
    (one,) = gpus("a", 1)
    lab = Cluster({"a": 1}, placed_anew=True)
    trial = lab.submit(gpus=1)
    assert _rejoined(trial, lab, _with_trouble(one, "used by others")) == []
    record = lab.trial(trial)
    assert (record.state, record.devices) == (TrialState.QUEUED, ())
    (start,) = of_kind(lab.offers("a", Offer((one,))), a.StartAttempt)
    assert (start.trial, start.attempt) == (trial, 2)
    lab.assert_replays()


def test_an_older_journal_sends_such_a_start_again() -> None:
    lab = Cluster({"a": 2})
    trial = lab.submit(gpus=1)
    (start,) = _rejoined(trial, lab, gpus("a", 2)[1])
    assert (start.trial, start.attempt, start.devices) == (trial, 1, ("GPU-a-0",))


def test_what_runs_on_a_gpu_in_trouble_is_not_placed_anew() -> None:
    one, two = gpus("a", 2)
    lab = Cluster({"a": Offer((one, two))}, placed_anew=True)
    runs = lab.submit(gpus=1)
    lab.say(e.HeadStarted(2), e.TunerHostReady())
    ailing = Offer((_with_trouble(one, "lost"), two))
    assert lab.join("a", ailing, holds=((TrialId(runs), 1),)) == []
    assert lab.held(runs) == ("a-0",)


def test_what_is_lost_with_its_host_holds_nothing() -> None:
    lab = Cluster({"a": 1, "b": 1}, losses_at_once=True)
    first = lab.submit(gpus=1)
    assert lab.where(first) == "a"
    lab.say(e.WorkerLost(WorkerId("a"), "gone"))
    assert lab.where(first) == "b"
    assert lab.trial(first).devices == ("GPU-b-0",)
    assert lab.state.workers[WorkerId("a")].used.shares == {}


def test_words_of_what_a_host_has_are_late_once_it_is_lost() -> None:
    lab = Cluster({"a": 1})
    lab.say(e.WorkerLost(WorkerId("a"), "gone"))
    lab.offers("a", Offer(gpus("a", 8)))
    assert not lab.counted
    lab.offers("nobody", Offer())
    assert not lab.counted


def test_a_host_that_has_not_said_what_it_has_gets_no_trial_that_needs_a_gpu() -> None:
    lab = Cluster({"a": None})
    waits = lab.submit(gpus=1)
    assert lab.trial(waits).state is TrialState.QUEUED
    out = lab.offers("a", Offer(gpus("a", 1)))
    assert [start.trial for start in of_kind(out, a.StartAttempt)] == [waits]


def test_a_trial_killed_in_the_middle_of_its_line_leaves_the_others_in_order() -> None:
    lab = Cluster({"a": 1})
    runs, one, two, three = (lab.submit(gpus=1) for _ in range(4))
    lab.say(e.TrialStopRequested(TrialId(two), EndReason.KILLED))
    (start,) = lab.leave(runs)
    assert start.trial == one
    (start,) = lab.leave(one)
    assert start.trial == three
    lab.assert_replays()


@pytest.mark.parametrize("why_not_there", ["its weights", "its needs", "a stranger"])
def test_a_trial_that_failed_waits_for_no_worker_that_is_none_for_it(why_not_there: str) -> None:
    """It goes back to the worker on which it and others failed. Mutation: any other one will do
    to be waited for, and it waits for ever."""
    lab = Cluster({}, workers=2, trial_retries=1, retry_backoff_s=0.0, quarantine_after=9, slots=9)
    lab.join("a", 2, domain="x" if why_not_there == "its weights" else "")
    parent = lab.submit()
    lab.leave(parent)
    (gpu,) = gpus("b", 1)
    ailing = replace(gpu, trouble="used by others")
    lab.join("b", Offer((ailing,) if why_not_there == "a stranger" else ()))
    needs = {"its weights": Needs(), "its needs": Needs(gpus=2.0), "a stranger": Needs(gpus=1.0)}
    child = lab.submit(needs[why_not_there], parent=parent)
    lab.state.workers[WorkerId("a")].health.failing.update({TrialId(77): None, TrialId(78): None})
    assert lab.where(child) == "a"
    lab.exit(child, EndReason.FAILED)
    lab.wait_until(lab.now + 5)
    assert lab.where(child) == "a"
