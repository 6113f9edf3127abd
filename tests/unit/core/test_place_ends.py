"""Places that a scheduler takes back at a moment that is known: nothing begins that could not end
in time, and what still runs shortly before hands over."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import AttemptState, EndReason, Outcome, TrialState
from dispatcher.core.place_ends import spent_text
from dispatcher.core.resources import Offer, WorkerRules
from dispatcher.core.why import Cause, why
from tests.support.cluster import Cluster
from tests.support.scene import HOST, Scene, of_kind

ROUNDING_S = 1e-6
RULES = {"longest_trial_s": 600.0, "hand_over_s": 15.0}


def lent(until: float, **more: Any) -> Cluster:
    """One worker with four slots in a place that is taken back then."""
    lab = Cluster({}, workers=1, **{**RULES, **more})
    lab.join("a", Offer(cpus=4.0, ends_at=until), slots=4)
    return lab


def test_nothing_begins_that_could_not_end_in_time() -> None:
    """Mutation: the end of a place is not looked at."""
    lab = lent(until=2_000.0)
    first = lab.submit()
    assert lab.where(first) == "a"
    lab.wait_until(1_398.0)
    in_time = lab.submit()
    assert lab.now == 1_399.0
    assert lab.where(in_time) == "a"
    late = lab.submit()
    assert lab.where(late) is None
    assert why(lab.state, lab.now).cause is Cause.PLACE_ENDS
    lab.offers("a", Offer(cpus=4.0, ends_at=9_000.0))
    assert lab.where(late) == "a", "somebody has given it more time"
    lab.assert_replays()


def test_without_a_longest_duration_trials_begin_until_the_hand_over() -> None:
    lab = lent(until=2_000.0, longest_trial_s=None)
    lab.wait_until(1_983.0)
    assert lab.where(lab.submit()) == "a"
    assert lab.where(lab.submit()) is None


def test_an_older_journal_is_replayed_under_the_rules_it_was_written_under() -> None:
    """Mutation: the rule holds without its setting."""
    lab = lent(until=1_500.0, longest_trial_s=None, hand_over_s=0.0)
    lab.wait_until(1_499.0)
    trial = lab.submit()
    assert lab.where(trial) == "a"
    assert lab.state.first_end == 1_500.0
    assert of_kind(lab.wait_until(1_600.0), a.StopAttempt) == []
    assert lab.where(trial) == "a"


def test_another_place_that_lasts_is_taken() -> None:
    """Though it costs more, and is emptier. Mutation: only the first free worker is asked."""
    lab = lent(until=1_300.0)
    lab.join("b", Offer(cpus=4.0), slots=4)
    assert lab.where(lab.submit(cpus=3)) == "b"
    assert lab.where(lab.submit()) == "b"


def test_nothing_is_kept_for_a_large_trial_in_a_place_that_ends_too_soon() -> None:
    """What is kept there would keep nobody from anything; the other place is kept for it.
    Mutation: the place that is free sooner is kept."""
    lab = Cluster({}, workers=2, **RULES)
    lab.join("a", Offer(cpus=4.0, ends_at=2_000.0), slots=9)
    lab.join("b", Offer(cpus=4.0), slots=9)
    lab.submit(cpus=3)
    lab.submit(cpus=3)
    lab.wait_until(1_500.0)
    large = lab.submit(cpus=4)
    for _ in range(8):
        lab.leave(lab.submit(cpus=1))
    assert lab.trial(large).passed_over >= 8
    small = lab.submit(cpus=1)
    assert lab.where(small) is None, "b is kept"


def test_what_still_runs_shortly_before_the_end_goes_on_elsewhere() -> None:
    """Mutations: it is stopped as the experiment is, and tried again for ever; it counts as killed
    and is not tried again; it is stopped a second time with the next event."""
    lab = lent(until=2_000.0, lost_retries=1, losses_at_once=True)
    trial = lab.submit()
    lab.started(trial)
    out = lab.tick()
    assert lab.now == 1_985.0
    (stop,) = of_kind(out, a.StopAttempt)
    assert (stop.worker, stop.trial, stop.reason) == ("a", trial, EndReason.PREEMPTED)
    (report,) = of_kind(out, a.ReportWorker)
    assert report.text == "the place of worker a ends in 15 s: 1 trial goes on elsewhere"
    assert of_kind(lab.metric(trial, 1, "0.5"), a.StopAttempt) == []
    lab.assert_replays()
    lab.exit(trial, EndReason.PREEMPTED)
    record = lab.trial(trial)
    assert (record.losses, record.failures, record.failed_on) == (1, 0, None)
    assert (record.state, record.gives_way, record.kill_reason) == (TrialState.QUEUED, False, None)
    lab.say(e.WorkerLost(WorkerId("a"), "wall time", planned=True))
    (start,) = of_kind(lab.join("a", Offer(cpus=4.0, ends_at=9_000.0)), a.StartAttempt)
    assert (start.trial, start.attempt) == (trial, 2)
    lab.wait_until(8_985.0)
    lab.exit(trial, EndReason.PREEMPTED, attempt=2)
    assert lab.trial(trial).outcome is Outcome.LOST, "as often as the file allows"
    lab.assert_replays()


def test_one_that_was_through_when_it_was_asked_to_go_has_gone_well() -> None:
    lab = lent(until=2_000.0, through_when_stopped=True)
    trial = lab.submit()
    lab.publish(trial)
    lab.final(trial)
    lab.tick()
    end = e.AttemptEnded(lab.trial(trial).id, 1, EndReason.PREEMPTED, exit_code=0)
    lab.say(end)
    assert (lab.trial(trial).outcome, lab.trial(trial).success) == (Outcome.SUCCEEDED, True)


def test_a_user_who_kills_it_meanwhile_is_obeyed() -> None:
    """Mutation: it is tried again, since its agent says that it was preempted."""
    for reported in (EndReason.PREEMPTED, EndReason.LOST):
        lab = lent(until=2_000.0)
        trial = lab.submit()
        lab.tick()
        lab.say(e.TrialStopRequested(lab.trial(trial).id, EndReason.KILLED))
        lab.exit(trial, reported)
        assert lab.trial(trial).outcome is Outcome.KILLED


def test_a_head_that_comes_then_asks_again() -> None:
    """It does not know the end of the place before its worker has joined. Mutation: the attempt
    stays one that is to stop, and its worker's hello stops it in a place that was given time."""
    lab = lent(until=2_000.0)
    trial = lab.submit()
    lab.started(trial)
    lab.tick()
    lab.say(e.HeadStarted(2))
    assert lab.state.first_end is None
    assert lab.trial(trial).attempt_state is AttemptState.RUNNING
    held = ((lab.trial(trial).id, 1),)
    out = lab.join("a", Offer(cpus=4.0, ends_at=2_000.0), slots=4, holds=held)
    (stop,) = of_kind(out, a.StopAttempt)
    assert stop.reason is EndReason.PREEMPTED
    out = lab.join("a", Offer(cpus=4.0, ends_at=2_000.0), slots=4, holds=held)
    (again,) = of_kind(out, a.StopAttempt)
    assert again == stop, "it may not have got the message"


def test_a_drain_hands_over_as_well() -> None:
    """What runs while the experiment winds up writes its checkpoint, too."""
    scene = Scene(hand_over_s=15.0)
    scene.say(e.WorkerOffers(HOST, Offer(ends_at=2_000.0)))
    scene.propose(0)
    scene.say(e.StopRequested(e.StopKind.DRAIN, "Ctrl-C"))
    (stop,) = of_kind(scene.wait_until(1_985.0), a.StopAttempt)
    assert stop.reason is EndReason.PREEMPTED
    scene.exit(0, EndReason.PREEMPTED)
    assert scene.state.trials[0].outcome is None, "a resume goes on with it"


def test_a_place_that_was_given_up_is_no_deadline() -> None:
    """Mutation: the core is woken at once, again and again, for a place that nobody has."""
    lab = lent(until=2_000.0)
    assert lab.state.first_end == 2_000.0
    lab.say(e.WorkerLost(WorkerId("a"), "preempted", planned=True))
    assert lab.state.first_end is None
    lab.join("a", Offer(ends_at=3_000.0))
    lab.say(e.WorkerWaits(WorkerId("a"), "Priority"))
    assert lab.state.first_end is None


def test_a_place_is_spent_when_nothing_may_begin_there_any_more() -> None:
    """By a clock that goes on while nothing happens. Mutations: by the newest event's; where the
    experiment winds up; where its worker is silent or gone."""
    lab = lent(until=2_000.0)
    lab.join("b", Offer(cpus=4.0), slots=4)
    a_, b = (lab.state.workers[WorkerId(name)] for name in "ab")
    assert not spent_text(lab.state, a_, 1_399.0)
    assert spent_text(lab.state, a_, 1_400.0)
    assert not spent_text(lab.state, b, 1e9)
    lab.say(e.WorkerSuspect(a_.id, 9.0))
    assert not spent_text(lab.state, a_, 1_400.0)
    lab.say(e.WorkerHeard(a_.id))
    assert spent_text(lab.state, a_, 1_400.0)
    lab.say(e.StopRequested(e.StopKind.DRAIN, "Ctrl-C"))
    assert not spent_text(lab.state, a_, 1_400.0)


def test_attempts_are_counted_for_the_place_that_a_worker_has() -> None:
    """Mutation: those of the place before count, too."""
    lab = lent(until=9_000.0)
    lab.leave(lab.submit())
    lab.submit()
    worker = lab.state.workers[WorkerId("a")]
    assert worker.begun == 2
    held = tuple((t, lab.trial(t).attempt) for t in lab.state.running)
    lab.join("a", Offer(cpus=4.0, ends_at=9_000.0), slots=4, holds=held)
    assert worker.begun == 2, "it has come again by another connection"
    lab.say(e.WorkerLost(worker.id, "taken back", planned=True))
    assert worker.begun == 0
    lab.assert_replays()


def test_a_place_is_for_as_many_trials_as_the_file_says() -> None:
    """Mutations: a second one begins there; one that is tried again goes there; nobody is told why
    the next one waits; the next place has had trials, too."""
    rules = {"a": WorkerRules(trials_per_place=1)}
    lab = Cluster({}, workers=1, worker_rules=rules, trial_retries=1, retry_backoff_s=1.0)
    lab.join("a", Offer(cpus=4.0), slots=4)
    worker = lab.state.workers[WorkerId("a")]
    first, second = lab.submit(), lab.submit()
    assert (lab.where(first), lab.where(second)) == ("a", None)
    text = "the place of a has had all trials that it is for"
    assert text in why(lab.state, lab.now).text
    assert spent_text(lab.state, worker, lab.now) == "its place has had all trials that it is for"
    lab.exit(first, EndReason.FAILED)
    lab.wait_until(lab.now + 5.0)
    assert (lab.where(first), lab.where(second)) == (None, None)
    lab.say(e.WorkerLost(worker.id, "done", planned=True))
    lab.join("a", Offer(cpus=4.0), slots=4)
    assert spent_text(lab.state, worker, lab.now) != "", "one has begun"
    assert [lab.where(each) for each in (first, second)].count("a") == 1
    lab.assert_replays()


#: What happens: a trial comes; the so-manieth that runs ends; so many seconds pass; a worker's
#: place is taken back and it has another one, which lasts so long; or its end is moved.
STEPS = st.lists(
    st.one_of(
        st.just("submit"),
        st.just("submit"),
        st.integers(0, 20),
        st.floats(0.5, 400.0),
        st.tuples(st.sampled_from("ab"), st.sampled_from((None, 20.0, 200.0, 900.0))),
        st.tuples(st.sampled_from("AB"), st.sampled_from((None, 20.0, 200.0, 900.0))),
    ),
    min_size=10,
    max_size=25,
)


def _play(lab: Cluster, step: Any) -> list[a.Action]:
    if step == "submit":
        before = len(lab.rows)
        lab.submit()
        assert len(lab.rows) == before + 1
        return []
    if isinstance(step, int):
        running = sorted(lab.state.running)
        return list(lab.leave(running[step % len(running)])) if running else []
    if isinstance(step, float):
        return lab.wait_until(lab.now + step)
    name, left_s = step
    offer = Offer(cpus=9.0, ends_at=None if left_s is None else lab.now + left_s)
    if name.isupper():
        return lab.offers(name.lower(), offer)
    out = lab.say(e.WorkerLost(WorkerId(name), "taken back", planned=True))
    return out + lab.join(name, offer, slots=3)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from((None, 100.0, 600.0)), st.sampled_from((0.0, 15.0)), STEPS)
def test_whatever_happens_no_attempt_begins_too_late_and_none_is_left_to_the_end(
    longest_s: float | None, hand_over_s: float, steps: list[Any]
) -> None:
    """By a look of our own after each event: who has just begun has time enough; who runs into the
    end was asked to go; nobody waits while a place that lasts is free; and a replay comes to the
    same."""
    lab = Cluster(
        {}, workers=9, longest_trial_s=longest_s, hand_over_s=hand_over_s, lost_retries=99
    )
    for name in "ab":
        lab.join(name, Offer(cpus=9.0), slots=3)
    least_s = max(longest_s or 0.0, hand_over_s)
    begun: dict[tuple[int, int], float] = {}
    for step in steps:
        _play(lab, step)
        for trial_id in lab.state.running:
            trial = lab.trial(trial_id)
            end = lab.state.workers[WorkerId(str(trial.worker))].offer.ends_at  # type: ignore[union-attr]
            since = begun.setdefault((trial_id, trial.attempt), lab.now)
            left_s = float("inf") if end is None else end - lab.now
            if since == lab.now and trial.attempt_state is AttemptState.STARTING:
                assert not least_s or left_s > least_s - ROUNDING_S, trial
            if hand_over_s and left_s <= hand_over_s - ROUNDING_S:
                assert trial.attempt_state is AttemptState.STOPPING, trial
        if lab.state.queued:
            for worker in lab.state.workers.values():
                assert worker.offer is not None
                end = worker.offer.ends_at
                left_s = float("inf") if end is None else end - lab.now
                too_late = least_s and left_s <= least_s + ROUNDING_S
                assert too_late or len(worker.running) == worker.slots, worker
    lab.assert_replays()
