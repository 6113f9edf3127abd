"""A backend of somebody else's, which raises, lies and hangs: it harms itself only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from dispatcher.errors import PermanentBackendError, ProtocolError
from dispatcher.platforms.services import threaded
from dispatcher.platforms.services.threaded import ThreadedBackend
from dispatcher.tuner_tools.scripted import Script, ScriptedBackend
from tests.support.processes import wait_until
from trial_runtime.facts import Weights

LAKE = WorkerId("lake")


class Scene:
    """The engine's side: what is said is kept, and acknowledged unless a test does not want it."""

    def __init__(self, make: Callable[[], Any], **settings: Any) -> None:
        self.backend = ThreadedBackend(LAKE, make, **settings)
        self.events: list[e.Event] = []
        self.acknowledging = True

    def turn(self) -> None:
        new = self.backend.check()
        self.events += new
        if new and self.acknowledging:
            self.backend.acknowledge()

    def until(self, kind: type[Any], count: int = 1) -> Any:
        def look() -> list[Any]:
            self.turn()
            found = [event for event in self.events if isinstance(event, kind)]
            return found if len(found) >= count else []

        return wait_until(look, kind.__name__) or look()[-1]

    def launch(self) -> None:
        self.backend.perform(a.LaunchWorker(LAKE))

    def start(self, trial: int) -> None:
        self.backend.perform(a.StartAttempt(LAKE, TrialId(trial), 1, "{}"))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threaded, "LOOK_S", 0.01)
    monkeypatch.setattr(threaded, "FIRST_PAUSE_S", 0.01)


@pytest.fixture
def scenes() -> Iterator[Callable[..., Scene]]:
    made: list[Scene] = []

    def make(maker: Callable[[], Any], **settings: Any) -> Scene:
        made.append(Scene(maker, **settings))
        return made[-1]

    yield make
    for scene in made:
        scene.backend.close(leave_running=False, deadline_s=1.0)


class Ticking(ScriptedBackend):
    """Time passes for it whenever it is looked at."""

    looks = 0

    def check(self) -> list[e.Event]:
        self.looks += 1
        self.tick()
        return super().check()


def test_an_attempt_from_order_to_end(scenes: Any) -> None:
    inner = Ticking(worker=LAKE)
    scene = scenes(lambda: inner)
    scene.launch()
    scene.until(e.WorkerJoined)
    scene.start(1)
    scene.until(e.AttemptEnded)
    kinds = [type(event) for event in scene.events]
    assert kinds == [e.WorkerJoined, e.AttemptStarted, e.FinalReported, e.AttemptEnded]
    wait_until(lambda: inner.acknowledged == 4, "all is acknowledged")


def test_a_reason_that_is_no_utf8_can_be_written_down(scenes: Any) -> None:
    """Mutation: the journal cannot hold it, and the head ends."""

    def make() -> Any:
        raise PermanentBackendError("caf\udce9")

    scene = scenes(make)
    scene.launch()
    assert scene.until(e.WorkerLost).reason == "caf\\udce9"


def test_a_metric_that_is_none_is_left_out_and_nothing_else(scenes: Any) -> None:
    """Mutation: it is journalled, and what reads the journal stumbles over it."""

    class Relaying(Ticking):
        def check(self) -> list[e.Event]:
            odd = ("NaN", "[" * 60_000, "x" * 100_000)
            return [
                more
                for event in super().check()
                for more in (
                    [e.FinalReported(event.trial, 1, n, value) for n, value in enumerate(odd, 90)]
                    if isinstance(event, e.AttemptStarted)
                    else []
                )
                + [event]
            ]

    scene = scenes(lambda: Relaying(worker=LAKE))
    scene.launch()
    scene.until(e.WorkerJoined)
    scene.start(1)
    scene.until(e.AttemptEnded)
    kinds = [type(event) for event in scene.events]
    assert kinds == [e.WorkerJoined, e.AttemptStarted, e.FinalReported, e.AttemptEnded]


def test_what_is_left_out_is_acknowledged_all_the_same(scenes: Any) -> None:
    """Mutation: a backend whose words were all left out says them again for ever."""

    class Odd(ScriptedBackend):
        acknowledgements = 0

        def check(self) -> list[e.Event]:
            if self.acknowledgements == 1 and self.running:
                return [e.FinalReported(TrialId(1), 1, 1, "NaN")]
            return super().check()

        def acknowledge(self) -> None:
            self.acknowledgements += 1
            super().acknowledge()

    inner = Odd(worker=LAKE)
    scene = scenes(lambda: inner)
    scene.launch()
    scene.until(e.WorkerJoined)
    scene.start(1)
    wait_until(lambda: inner.acknowledgements >= 2, "it is acknowledged")


def test_nothing_more_is_asked_before_the_last_is_on_disk(scenes: Any) -> None:
    """Mutation: the next batch is taken at once, and the acknowledgement covers it as well."""
    inner = Ticking(worker=LAKE)
    scene = scenes(lambda: inner)
    scene.acknowledging = False
    scene.launch()
    scene.until(e.WorkerJoined)
    scene.start(1)
    looks = inner.looks
    for number in range(2, 7):  # turns of the thread
        wait_until(lambda count=number: len(inner.performed) == count, "the order arrives")
        scene.backend.perform(a.StopAttempt(LAKE, TrialId(9), 1, EndReason.KILLED, 0.0))
        scene.turn()
    assert [type(event) for event in scene.events] == [e.WorkerJoined]
    assert (inner.looks, inner.acknowledged) == (looks, 0)
    scene.backend.acknowledge()
    scene.acknowledging = True
    scene.until(e.AttemptEnded)
    assert sum(isinstance(event, e.AttemptStarted) for event in scene.events) == 1


def test_one_that_cannot_be_made_is_tried_again(scenes: Any) -> None:
    """Mutation: what a factory raises ends the thread without a word."""
    tries: list[int] = []

    def make() -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("no water")
        return Ticking(worker=LAKE)

    scene = scenes(make)
    for number in (1, 2):
        scene.launch()
        scene.until(e.WorkerLost, number)
    lost = [event for event in scene.events if isinstance(event, e.WorkerLost)]
    assert [(each.reason, each.hopeless) for each in lost] == 2 * [
        ("RuntimeError: no water", False)
    ]
    scene.launch()
    scene.until(e.WorkerJoined)


def test_one_that_somebody_must_mend_is_given_up_at_once(scenes: Any) -> None:
    def make() -> Any:
        raise PermanentBackendError("no licence", hint="buy one")

    scene = scenes(make)
    scene.launch()
    scene.until(e.WorkerLost)
    assert scene.events == [e.WorkerLost(LAKE, "no licence; buy one", hopeless=True)]


def test_what_a_method_raises_sets_it_aside_and_ends_what_it_ran(scenes: Any) -> None:
    class Leaking(Ticking):
        def perform(self, action: a.WorkerAction) -> None:
            if isinstance(action, a.StartAttempt):
                raise KeyError(action.trial)
            super().perform(action)

    inner = Leaking(worker=LAKE)
    scene = scenes(lambda: inner)
    scene.launch()
    scene.until(e.WorkerJoined)
    scene.start(7)
    scene.until(e.WorkerLost)
    assert "KeyError: 7" in scene.events[-1].reason
    assert inner.closed
    scene.start(8)  # nobody is there: lost, as the core knows by now
    assert scene.backend.check() == []


@pytest.mark.parametrize(
    "lie",
    [
        e.WorkerJoined(WorkerId("local"), 5),
        e.AttemptEnded(TrialId(99), 1, EndReason.FINISHED),
        e.StopRequested(e.StopKind.NOW, "because"),
    ],
    ids=lambda lie: type(lie).__name__,
)
def test_what_it_may_not_say_sets_it_aside(scenes: Any, lie: Any) -> None:
    """Another worker's hello, an attempt that nobody gave it, a stop of the experiment."""
    inner = Ticking(worker=LAKE)
    scene = scenes(lambda: inner)
    scene.launch()
    scene.until(e.WorkerJoined)
    inner.say(lie)
    scene.until(e.WorkerLost)
    assert lie not in scene.events


@pytest.mark.parametrize(
    "end",
    [
        e.AttemptEnded(TrialId(7), 1, EndReason.FINISHED, cpu_s="long"),  # type: ignore[arg-type]
        e.AttemptEnded(TrialId(7), 1, EndReason.FINISHED, weights=2.0),  # type: ignore[arg-type]
        e.AttemptEnded(TrialId(7), 1, "bored"),  # type: ignore[arg-type]
        e.AttemptEnded(TrialId(7), 1, EndReason.FAILED, text=object()),  # type: ignore[arg-type]
        e.AttemptEnded(TrialId(7), 1, EndReason.FAILED, 1 << 70),
    ],
    ids=["text for seconds", "seconds for weights", "reason", "object", "number"],
)
def test_values_that_no_journal_can_hold_set_it_aside(scenes: Any, end: e.AttemptEnded) -> None:
    """Written down, such a row could not be read: no later head could lead the experiment."""
    inner = Ticking(worker=LAKE)
    scene = scenes(lambda: inner)
    scene.launch()
    scene.until(e.WorkerJoined)
    scene.start(7)
    inner.say(end)
    scene.until(e.WorkerLost)
    assert end not in scene.events
    assert "malformed AttemptEnded" in scene.events[-1].reason


def test_what_it_reports_is_what_a_replay_reads(scenes: Any) -> None:
    """A text where the type has an enumeration is that text in the journal, and read as the other.
    What is applied must not differ from it."""
    inner = Ticking(worker=LAKE, script=lambda order: Script(ticks=1 << 60))
    scene = scenes(lambda: inner)
    scene.launch()
    scene.until(e.WorkerJoined)
    scene.start(7)
    scene.until(e.AttemptStarted)
    inner.say(e.AttemptEnded(TrialId(7), 1, "finished", cpu_s=1))  # type: ignore[arg-type]
    end = scene.until(e.AttemptEnded)
    assert type(end.reason) is EndReason
    assert type(end.cpu_s) is float


def test_the_end_of_an_attempt_takes_its_values_in_the_order_of_0_1_0(scenes: Any) -> None:
    inner = Ticking(worker=LAKE, script=lambda order: Script(ticks=1 << 60))
    scene = scenes(lambda: inner)
    scene.launch()
    scene.until(e.WorkerJoined)
    scene.start(7)
    scene.until(e.AttemptStarted)
    weights = Weights("ab", "files", 9)
    inner.say(e.AttemptEnded(TrialId(7), 1, EndReason.FINISHED, 0, None, "", weights, 1.5, 2.5))
    end = scene.until(e.AttemptEnded)
    assert (end.weights, end.cpu_s, end.wall_s) == (weights, 1.5, 2.5)


def test_one_that_hangs_is_suspect_then_lost_and_keeps_nobody_waiting(scenes: Any) -> None:
    now = [0.0]
    let_go, hangs = threading.Event(), threading.Event()

    class Hanging(Ticking):
        def perform(self, action: a.WorkerAction) -> None:
            if isinstance(action, a.StartAttempt):
                hangs.set()
                let_go.wait(120)
            super().perform(action)

    inner = Hanging(worker=LAKE, script=lambda order: Script(ticks=1 << 60))
    scene = scenes(lambda: inner, suspect_s=30.0, lost_s=120.0, clock=lambda: now[0])
    try:
        scene.launch()
        scene.until(e.WorkerJoined)
        scene.start(1)
        assert hangs.wait(120)
        now[0] += 31.0
        scene.until(e.WorkerSuspect)
        now[0] += 100.0
        scene.until(e.WorkerLost)
        assert scene.events[-1].reason == "a call has not come back for 131 s"
    finally:
        let_go.set()
    wait_until(lambda: inner.closed, "it lets go of what it holds when it comes back")
    assert inner.running == [(1, 1)], "which may be another one's by now"


def test_one_that_loses_its_worker_is_closed(scenes: Any) -> None:
    """Mutation: nobody closes one that has let go by its own word; its connections stay."""
    inner = Ticking(worker=LAKE)
    scene = scenes(lambda: inner)
    scene.launch()
    scene.until(e.WorkerJoined)
    inner.lose()
    scene.until(e.WorkerLost)
    wait_until(lambda: inner.closed, "it is closed")


@pytest.mark.parametrize("end", ["its own word", "an error", "a lie", "a hang"])
@pytest.mark.parametrize("acknowledged", [True, False], ids=["heard", "words on their way"])
def test_the_next_one_begins_as_if_it_were_the_first(
    scenes: Any, end: str, acknowledged: bool
) -> None:
    """However the one before was lost, and whether or not its words were on disk by then.
    Mutations: a batch of the one before counts as on its way for ever, and the next one is never
    heard; the next one is heard again before it has joined, since the one before was suspect."""
    now = [0.0]
    let_go, hangs = threading.Event(), threading.Event()

    class Ending(Ticking):
        def perform(self, action: a.WorkerAction) -> None:
            if isinstance(action, a.StopAttempt):
                if end == "an error":
                    raise OSError("no water")
                hangs.set()
                let_go.wait(120)
            super().perform(action)

    made: list[Ticking] = []

    def make() -> Ticking:
        made.append(Ticking(worker=LAKE) if made else Ending(worker=LAKE))
        return made[-1]

    scene = scenes(make, suspect_s=30.0, lost_s=120.0, clock=lambda: now[0])
    try:
        scene.launch()
        scene.acknowledging = acknowledged
        scene.until(e.WorkerJoined)
        if not acknowledged and end in ("its own word", "a lie"):
            scene.acknowledging = True  # it says no more before that is on disk
            scene.backend.acknowledge()
        if end == "its own word":
            scene.acknowledging = acknowledged
            made[0].lose()
        elif end == "a lie":
            made[0].say(e.StopRequested(e.StopKind.NOW, "because"))
        else:
            scene.backend.perform(a.StopAttempt(LAKE, TrialId(9), 1, EndReason.KILLED, 0.0))
        if end == "a hang":
            assert hangs.wait(120)
            now[0] += 31.0
            scene.until(e.WorkerSuspect)
            now[0] += 100.0
        scene.until(e.WorkerLost)
        scene.acknowledging = True
        scene.backend.acknowledge()  # the end of the one before is on disk: nobody is there for it
        before = len(scene.events)
        scene.launch()
        scene.until(e.WorkerJoined, 2)
        assert [type(event) for event in scene.events[before:]] == [e.WorkerJoined]
        scene.start(1)
        scene.until(e.AttemptEnded)
    finally:
        let_go.set()
    kinds = [type(event) for event in scene.events[before:]]
    assert kinds == [e.WorkerJoined, e.AttemptStarted, e.FinalReported, e.AttemptEnded]
    wait_until(lambda: made[1].acknowledged == 4, "all is acknowledged")


def test_those_that_end_soon_follow_one_another_at_growing_distance(
    scenes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: a cluster in maintenance is asked for a backend without a pause; a backend that
    is lost once a week waits five minutes for its next one after ten weeks."""
    for name, seconds in (("FIRST_PAUSE_S", 0.01), ("LONGEST_PAUSE_S", 0.07)):
        monkeypatch.setattr(threaded, name, seconds)
    now = [0.0]
    made: list[Ticking] = []

    def make() -> Ticking:
        made.append(Ticking(worker=LAKE))
        return made[-1]

    scene = scenes(make, clock=lambda: now[0])
    pauses: list[float] = []
    for count, lasts_s in enumerate((1.0, 1.0, 1.0, 1.0, 60.0, 1.0, 1.0), 1):
        scene.launch()
        pauses.append(scene.backend.pause_s)
        scene.until(e.WorkerJoined, count)
        now[0] += lasts_s
        made[-1].lose()
        scene.until(e.WorkerLost, count)
    assert pauses == [0.0, 0.01, 0.02, 0.04, 0.07, 0.01, 0.02]


def test_nobody_waits_at_the_end_for_one_that_is_not_made_yet(
    scenes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threaded, "FIRST_PAUSE_S", 3600.0)
    monkeypatch.setattr(threaded, "LONGEST_PAUSE_S", 3600.0)

    def make() -> Any:
        raise OSError("not now")

    scene = scenes(make)
    scene.launch()
    scene.until(e.WorkerLost)
    scene.launch()
    scene.backend.close(leave_running=False, deadline_s=60.0)

    def are_gone() -> bool:
        return f"backend {LAKE}" not in [thread.name for thread in threading.enumerate()]

    wait_until(are_gone, "its threads end", 30.0)  # the first one has been lost, and logs why


def test_it_has_no_wire(scenes: Any) -> None:
    with pytest.raises(ProtocolError):
        scenes(Ticking).backend.receive(b"")
