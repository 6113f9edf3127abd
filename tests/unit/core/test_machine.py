"""The core under a state machine: any order of what peers may say, promises checked each time."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import OVER, AttemptState, EndReason, Phase, TrialState
from dispatcher.core.why import Cause, why
from tests.support.in_a_row import unwarranted
from tests.support.lengths import some_of
from tests.support.scene import Scene, weights

PICK = st.integers(min_value=0, max_value=10_000)
WORKERS = (WorkerId("local/a"), WorkerId("local/b"))
REASONS = st.sampled_from([r for r in EndReason if r not in (EndReason.LOST, EndReason.SHUTDOWN)])


def goes_on(machine: Core) -> bool:
    """Whether there is an experiment to do something to. What is over is over until the next head:
    without this most of a run's steps are spent on it."""
    return machine.scene.state.phase not in OVER


class Core(RuleBasedStateMachine):
    """A tuner that answers, waits and fails; agents that start, report, end and vanish."""

    @initialize(limit=st.sampled_from([None, None, 50.0, 400.0]))
    def begin(self, limit: float | None) -> None:
        """Everything empty, and the first head."""
        self.scene = Scene(
            begin=False,
            max_duration_s=limit,
            slots=2,
            lookahead=2,
            max_trials=12,
            on_tuner_error="continue",
            losses_at_once=True,
            max_failed_in_a_row=4,
            quarantine_after=2,
            retries={"timed out": 1},
            early_stop_keeps_result=True,
        )
        self.followed: list[a.Action] = []  # of the newest event
        self.told: dict[int, list[str]] = {}  # what the tuner believes: trial → calls
        self.believed: dict[int, int] = {}  # trial → newest attempt that was started
        self.graces: dict[TrialId, float] = {}  # of the newest order to stop
        self.deliveries: list[a.Deliver] = []  # to the present host, in order
        self.asked: set[int] = set()  # by the present host
        self.ended: set[int] = set()
        self.finals: dict[tuple[int, int], str] = {}
        self.ready = False
        self.epoch = 0
        self.led_from = 0
        self.new_head(settled=True)

    # -- what leaves ---------------------------------------------------------------------

    def say(self, event: e.Event) -> bool:
        """As the engine does: with what it is judged by. An end has the reason that it names."""
        reason = self.scene.state.phase_reason
        for metric in list(core.judged_by(self.scene.state, event)):
            assert not self.scene.say(metric)
        self.followed = self.scene.say(event)
        for action in self.followed:
            self.act(action)
        if self.scene.state.phase_reason != reason:
            told = [row.event for row in self.scene.rows]
            assert not unwarranted(told, self.scene.state.phase_reason)
        return self.scene.counted

    def act(self, action: a.Action) -> None:
        state = self.scene.state
        match action:
            case a.StopAttempt(trial=trial, grace_s=grace_s):
                self.graces[trial] = grace_s
            case a.StartAttempt(trial=trial, attempt=attempt):
                parent = state.trials[trial].parent
                if parent is not None:
                    above = state.trials[parent]
                    assert parent in self.ended, "promise 1: before the parent's end"
                    assert above.weights is not None, "promise 1: before the parent's weights"
                newest = self.believed.get(trial, 0)
                assert attempt >= newest, "promise 3"
                self.believed[trial] = attempt
                assert len(state.running) <= state.settings.slots, "promise 5"
                worker = state.workers[action.worker]
                assert worker.alive
                if attempt > newest:
                    assert not state.low_disks, "a new attempt on a full disk"
                    assert worker.suspect_since is None
                    assert worker.health.quarantined_until is None
            case a.Deliver(trial=trial):
                assert self.ready
                assert trial not in self.ended, "promise 2"
                assert trial not in {d.trial for d in self.deliveries}, "promise 2"
                done = "result" in self.told.get(trial, [])
                assert action.result_delivered == done, "promise 2"
                self.deliveries.append(action)
            case a.OpenRequest(trial=trial):
                assert self.ready
                assert state.trials[trial].asked > 1 or not state.low_disks
                self.asked.add(trial)
            case a.OpenGate(trial=trial) | a.CancelRequest(trial=trial):
                self.asked.discard(trial)
            case _:
                pass

    def pick(self, choices: object, number: int) -> TrialId | None:
        found = sorted(choices)  # type: ignore[call-overload]
        return TrialId(found[number % len(found)]) if found else None

    # -- the head ------------------------------------------------------------------------

    @precondition(lambda self: not goes_on(self) or len(self.scene.rows) - self.led_from > 12)
    @rule(settled=st.booleans())
    def new_head(self, settled: bool) -> None:
        """Replay what was journalled; a new head goes on with that. Mostly its peers are there
        before anything else befalls it."""
        self.scene.assert_replays()
        self.scene.state = self.scene.replayed()
        self.ready = False
        self.deliveries.clear()
        self.asked.clear()
        self.epoch += 1
        self.say(e.HeadStarted(self.epoch))
        for action in core.outstanding(self.scene.state):
            self.act(action)
        self.led_from = len(self.scene.rows)
        if settled:
            for worker in WORKERS:
                self.join(worker, keeps=True, slots=2)
            self.host_ready()

    # -- the tuner host --------------------------------------------------------------------

    @precondition(lambda self: not self.ready)
    @rule()
    def host_ready(self) -> None:
        self.ready = True
        self.say(e.TunerHostReady())
        assert set(self.scene.state.open) <= self.asked or self.scene.state.phase is not (
            Phase.RUNNING
        )

    @precondition(lambda self: self.ready and goes_on(self))
    @rule()
    def host_lost(self) -> None:
        self.ready = False
        self.deliveries.clear()
        self.asked.clear()
        self.say(e.TunerHostLost("gone"))

    @precondition(lambda self: self.ready and self.asked)
    @rule(number=PICK, above=PICK, saves=st.booleans(), inherits=st.booleans())
    def propose(self, number: int, above: int, saves: bool, inherits: bool) -> None:
        trial = self.pick(self.asked, number)
        parent = self.pick(self.scene.state.claims.values(), above) if inherits else None
        self.asked.discard(trial)
        restore = None if parent is None else f"t/{parent}"
        self.say(e.Proposed(trial, "{}", f"t/{trial}" if saves else None, restore))

    @precondition(lambda self: self.ready and self.asked)
    @rule(
        number=PICK,
        above=st.lists(PICK, min_size=1, max_size=3),
        mode=st.sampled_from(["all", "any"]),
    )
    def wait(self, number: int, above: list[int], mode: str) -> None:
        trial = self.pick(self.asked - set(self.scene.state.blocked), number)
        if trial is None:
            return
        parents = tuple(TrialId(n % (int(self.scene.state.next_id) + 1)) for n in above)
        self.say(e.WaitStarted(trial, 1, parents, mode))

    @precondition(lambda self: self.ready and self.asked)
    @rule(number=PICK, kind=st.sampled_from(list(e.RequestEnd)))
    def refuse(self, number: int, kind: e.RequestEnd) -> None:
        trial = self.pick(self.asked, number)
        self.asked.discard(trial)
        self.say(e.RequestFailed(trial, kind, "no"))

    @precondition(lambda self: self.ready and self.asked)
    @rule(number=PICK, over=st.booleans())
    def stand(self, number: int, over: bool) -> None:
        trial = self.pick(self.asked, number)
        self.say(e.ForeignWaitOver(trial) if over else e.ForeignWaitSeen(trial))

    @precondition(lambda self: self.deliveries)
    @rule(error=st.sampled_from(["", "", "ValueError"]), whole=st.booleans())
    def deliver(self, error: str, whole: bool) -> None:
        work = self.deliveries[0]
        calls = self.told.setdefault(work.trial, [])
        if work.value is not None and "result" not in calls:
            final = self.finals.get((work.trial, self.believed.get(work.trial, 0)))
            assert final is None or work.value == final, "promise 2"
            calls.append("result")
            assert self.say(e.ResultDelivered(work.trial, error))
            if not whole:
                return
        self.deliveries.pop(0)
        assert "end" not in calls, "promise 2"
        calls.append("end")
        self.ended.add(work.trial)
        assert self.say(e.EndDelivered(work.trial, error))

    # -- agents ------------------------------------------------------------------------------

    @precondition(goes_on)
    @rule(worker=st.sampled_from(WORKERS), keeps=st.booleans(), slots=st.integers(1, 2))
    def join(self, worker: WorkerId, keeps: bool, slots: int) -> None:
        known = self.scene.state.workers.get(worker)
        holds = sorted(known.running) if known and keeps else []
        pairs = tuple((t, self.scene.state.trials[t].attempt) for t in holds)
        stopping = {
            t: self.graces[t]
            for t in holds
            if self.scene.state.trials[t].attempt_state is AttemptState.STOPPING
        }
        self.say(e.WorkerJoined(worker, slots, pairs))
        again = {x.trial: x.grace_s for x in self.followed if isinstance(x, a.StopAttempt)}
        assert again == stopping, "ordered again, as it was"

    @precondition(goes_on)
    @rule(worker=st.sampled_from(WORKERS))
    def lose(self, worker: WorkerId) -> None:
        self.say(e.WorkerLost(worker, "gone"))

    @precondition(goes_on)
    @rule(worker=st.sampled_from(WORKERS), reason=st.sampled_from(["", "Priority"]))
    def wait_for_a_place(self, worker: WorkerId, reason: str) -> None:
        known = self.scene.state.workers.get(worker)
        before = known.losses if known else 0
        if known is not None and known.alive:
            self.say(e.WorkerLost(worker, "preempted", planned=True))
        self.say(e.WorkerWaits(worker, reason, 60.0))
        assert self.scene.state.workers[worker].losses == before, "nobody is to blame"

    @precondition(goes_on)
    @rule(worker=st.sampled_from(WORKERS), heard=st.booleans())
    def fall_silent(self, worker: WorkerId, heard: bool) -> None:
        self.say(e.WorkerHeard(worker) if heard else e.WorkerSuspect(worker, 30.0))

    @precondition(lambda self: self.scene.state.running)
    @rule(
        number=PICK, seq=st.integers(1, 9), what=st.sampled_from(["started", "metric", "weights"])
    )
    def report(self, number: int, seq: int, what: str) -> None:
        trial = self.pick(self.scene.state.running, number)
        attempt = self.scene.trial(trial).attempt
        if what == "started":
            self.say(e.AttemptStarted(trial, attempt))
        elif what == "metric":
            self.say(e.MetricReported(trial, attempt, seq, f"0.{seq}"))
        else:
            self.say(e.WeightsPublished(trial, attempt, seq, weights(trial, attempt)))

    @precondition(lambda self: self.scene.state.running)
    @rule(number=PICK, seq=st.integers(1, 9))
    def stop_early_and_lose_the_worker(self, number: int, seq: int) -> None:
        """What no other order of these three brings: a result that only a metric holds."""
        self.report(number, seq, "metric")
        trial = self.pick(self.scene.state.running, number)
        self.say(e.TrialStopRequested(trial, EndReason.STOPPED_EARLY))
        worker = self.scene.trial(trial).worker
        assert worker is not None
        self.say(e.WorkerLost(worker, "it went"))

    @precondition(lambda self: self.scene.state.running)
    @rule(number=PICK, value=st.sampled_from(["1", "2"]))
    def final(self, number: int, value: str) -> None:
        trial = self.pick(self.scene.state.running, number)
        attempt = self.scene.trial(trial).attempt
        if self.say(e.FinalReported(trial, attempt, 1, value)):
            self.finals[trial, attempt] = value

    @precondition(lambda self: self.scene.state.running)
    @rule(number=PICK, reason=REASONS, files=st.booleans())
    def exit(self, number: int, reason: EndReason, files: bool) -> None:
        trial = self.pick(self.scene.state.running, number)
        record = self.scene.trial(trial)
        if record.attempt_state is AttemptState.STOPPING and record.kill_reason is None:
            reason = EndReason.SHUTDOWN
        found = weights(trial, record.attempt) if files else None
        self.say(e.AttemptEnded(trial, record.attempt, reason, weights=found))

    @precondition(lambda self: self.believed)
    @rule(number=PICK, back=st.integers(0, 2))
    def say_something_late(self, number: int, back: int) -> None:
        trial = self.pick(self.believed, number)
        attempt = self.believed[trial] - back
        record = self.scene.trial(trial)
        if record.state is TrialState.RUNNING and attempt == record.attempt:
            return
        before = record.final
        assert not self.say(e.FinalReported(trial, attempt, 99, "late")), "promise 3"
        assert not self.say(e.AttemptEnded(trial, attempt, EndReason.FINISHED)), "promise 3"
        assert record.final == before

    # -- users and time ------------------------------------------------------------------------

    @precondition(lambda self: self.scene.state.trials and goes_on(self))
    @rule(number=PICK, reason=st.sampled_from([EndReason.KILLED, EndReason.STOPPED_EARLY]))
    def kill(self, number: int, reason: EndReason) -> None:
        trial = self.pick(self.scene.state.trials, number)
        self.say(e.TrialStopRequested(trial, reason))

    @precondition(goes_on)
    @rule(number=PICK)
    def submit(self, number: int) -> None:
        self.say(e.TrialSubmitted("{}", f"hand/{number}"))

    @precondition(lambda self: goes_on(self) and len(self.scene.rows) % 3 == 0)
    @rule(place=st.sampled_from(["/a", "/b"]), low=st.booleans())
    def disk(self, place: str, low: bool) -> None:
        self.say(e.DiskLow(place, 1, 2) if low else e.DiskRecovered(place, 3))

    @precondition(lambda self: goes_on(self) and (self.scene.state.running or self.epoch % 3 == 0))
    @rule(kind=st.sampled_from(list(e.StopKind)), grace=st.sampled_from([None, 0.0, 60.0]))
    def stop(self, kind: e.StopKind, grace: float | None) -> None:
        """Whoever says how long it may take is obeyed, whatever was said before."""
        state = self.scene.state
        over = state.phase in OVER
        running = set(state.running)
        heard = {t for t in running if state.trials[t].attempt_state is AttemptState.STOPPING}
        self.say(e.StopRequested(kind, "user", grace))
        if over or kind is not e.StopKind.NOW:
            return
        told = {x.trial: x.grace_s for x in self.followed if isinstance(x, a.StopAttempt)}
        usual = state.settings.trial_stop_grace_s
        wanted = dict.fromkeys(running - heard, usual)
        if grace is not None:
            wanted = dict.fromkeys(running, grace)
        assert told == wanted

    @precondition(lambda self: self.scene.state.phase is Phase.STOPPING)
    @rule(grace=st.sampled_from([None, 0.0, 60.0]))
    def stop_again(self, grace: float | None) -> None:
        """While all is being stopped: what otherwise hardly ever comes."""
        self.stop(e.StopKind.NOW, grace)

    @rule()
    def tick(self) -> None:
        due = core.next_deadline(self.scene.state)
        if due is None:
            return
        for action in self.scene.wait_until(max(due, self.scene.now)):
            self.act(action)
        again = core.next_deadline(self.scene.state)
        assert again is None or again > due, "the head would tick for ever"

    @invariant()
    def nothing_runs_after_the_end(self) -> None:
        state = self.scene.state
        if state.phase in OVER:
            assert not state.running

    @invariant()
    def why_has_an_answer(self) -> None:
        """Promise 10, and no sentence that contradicts the state."""
        state = self.scene.state
        told = why(state, self.scene.now)
        assert told.text
        assert (told.cause is Cause.OVER) == (state.phase in OVER)

    @invariant()
    def somebody_may_be_tried(self) -> None:
        """Quarantine never leaves an experiment without a worker to use."""
        state = self.scene.state
        usable = [w for w in state.workers.values() if w.usable]
        if state.phase is Phase.RUNNING and usable:
            assert any(w.health.quarantined_until is None for w in usable)

    @invariant()
    def what_is_spoken_stays(self) -> None:
        for trial in self.ended:
            assert self.scene.trial(trial).state is TrialState.ENDED


Core.TestCase.settings = settings(
    max_examples=some_of(150), stateful_step_count=60, deadline=None, derandomize=True
)
TestCore = Core.TestCase
