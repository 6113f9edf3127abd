"""An agent elsewhere, as the engine's thread sees it, over a machine that a test speaks for."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.platforms.agents import visited as process
from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.agents.visit import AgentEnded
from dispatcher.platforms.agents.visited import VisitedProcess
from dispatcher.remote_python.errors import HostUnfit
from dispatcher.ssh import ConnectionLost, HostUnreachable
from tests.support.processes import wait_until
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint
from trial_runtime.retry import growing_pause

CONFIG = AgentConfig(
    worker="h1",
    slots=2,
    head=Endpoint("tcp://127.0.0.1:1"),
    epoch=1,
    run_folder="",
    experiment_folder="/e",
    trial=TrialSpec("/code", command="true"),
    weights_root="/w",
)


class World:
    """The machine. ``logins`` holds what comes of each: an error, or None for a connection."""

    def __init__(self) -> None:
        self.logins: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self.did: list[str] = []
        self.pid = 0
        self.next_pid = 100
        self.cut = threading.Event()
        self.tried = 0
        self.outdated = False

    def visit(self) -> World:
        return self

    def __enter__(self) -> World:
        self.tried += 1
        outcome = self.logins.get(timeout=250)
        if outcome is not None:
            raise outcome
        self.cut.clear()
        self.did.append("login")
        return self

    def __exit__(self, *_: Any) -> None:
        self.did.append("left")

    def check(self) -> None:
        if self.cut.is_set():
            raise ConnectionLost("cut")

    def ensure(self, _config: AgentConfig) -> tuple[int, bool]:
        fresh = not self.pid
        if fresh:
            self.next_pid += 1
            self.pid = self.next_pid
        self.did.append("start" if fresh else "take up")
        return self.pid, fresh

    def take_up(self, _config: AgentConfig) -> int:
        self.did.append("take up")
        if not self.pid:
            raise AgentEnded("its process ended")
        return self.pid

    def look(self, _config: AgentConfig) -> None:
        self.did.append("look")
        if not self.pid:
            raise AgentEnded("its process ended; its last lines: no space")

    def end(self, _config: AgentConfig, _grace_s: float, *, ask: bool) -> None:
        self.did.append("ask and end" if ask else "end")
        self.pid = 0


class Scene:
    def __init__(self, **settings: Any) -> None:
        self.world = World()
        self.lost: list[Loss] = []
        self.process = VisitedProcess(
            "h1",
            self.world.visit,
            **{"known": False, **settings},
        )

    def until(self, condition: Any, what: str = "it happens") -> None:
        def look() -> Any:
            loss = self.process.look(0.0)
            if loss is not None:
                self.lost.append(loss)
            return condition()

        wait_until(look, what)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S", "HOPELESS_PAUSE_S"):
        monkeypatch.setattr(process, name, 0.01)
    monkeypatch.setattr(process, "LONGEST_HOPELESS_PAUSE_S", 0.01)
    monkeypatch.setattr(process, "LOOK_EVERY_S", 0.01)


@pytest.fixture
def scene() -> Iterator[Scene]:
    one = Scene()
    yield one
    one.world.logins.put(ConnectionLost("the test is over"))
    one.process.leave()


def test_one_is_started_looked_after_and_ended(scene: Scene) -> None:
    scene.process.ensure(CONFIG)
    assert scene.process.expects(101) is None, "nobody knows yet"
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    assert (scene.process.expects(101), scene.process.expects(7)) == (True, None)
    assert scene.process.look(60.0) is None
    scene.until(lambda: "look" in scene.world.did)
    scene.process.terminate()
    scene.process.end(process.time.monotonic() + 60.0)
    assert scene.world.did == ["login", "start", "look", "ask and end", "left"]
    assert scene.lost == []


def test_what_ended_is_told_once_with_its_last_words_and_not_replaced_unasked(
    scene: Scene,
) -> None:
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    scene.world.pid = 0
    scene.process.look(60.0)
    scene.until(lambda: scene.lost)
    assert scene.lost == [Loss("its process ended; its last lines: no space")]
    scene.process.give_up()
    assert scene.world.did.count("start") == 1
    scene.process.ensure(CONFIG)
    scene.until(lambda: scene.process.pid == 102)
    assert len(scene.lost) == 1


def test_those_that_end_soon_follow_one_another_at_growing_distance(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one that cannot live is started, lost and recorded every few seconds for days."""
    monkeypatch.setattr(process, "FIRST_PAUSE_S", 1000.0)
    monkeypatch.setattr(process, "LONGEST_HOPELESS_PAUSE_S", 3600.0)
    monkeypatch.setattr(process, "SHORT_LIFE_S", math.inf)
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    pauses = []

    def paused(*arguments: float) -> float:
        pauses.append(growing_pause(*arguments))
        return 0.0 if len(pauses) < 4 else pauses[-1]

    monkeypatch.setattr(process, "growing_pause", paused)
    for _ in range(3):
        scene.world.pid = 0
        scene.process.look(60.0)
        told = len(scene.lost)
        scene.until(lambda told=told: len(scene.lost) > told)  # type: ignore[misc]
        assert scene.process.trouble.startswith("its process ended")
        scene.process.give_up()
        scene.process.ensure(CONFIG)
        scene.until(lambda: scene.process.pid is not None)
    scene.world.pid = 0
    scene.process.look(60.0)
    scene.until(lambda: len(pauses) == 4)
    assert pauses == [1000.0, 2000.0, 3600.0, 3600.0]
    scene.process.end(process.time.monotonic() + 60.0)
    assert scene.world.did[-2:] == ["end", "left"], "nobody waits for that pause"


def test_one_that_is_given_up_is_ended_before_another_is_started(scene: Scene) -> None:
    """Else both would run the same trials. Mutation: ``give_up`` forgets the pid."""
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    scene.world.cut.set()
    scene.process.give_up()
    assert scene.process.expects(101) is False
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 102)
    assert scene.world.did == ["login", "start", "left", "login", "end", "start"]


def test_a_lost_connection_is_made_anew_and_the_agent_told_where_its_head_is(
    scene: Scene,
) -> None:
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    scene.world.cut.set()
    for _ in range(5):
        scene.world.logins.put(HostUnreachable("silence"))
    scene.world.logins.put(None)
    scene.until(lambda: scene.world.did[-1] == "take up")
    assert scene.process.pid == 101
    assert scene.lost == [], "its lease is what counts"


def test_one_that_works_is_not_lost_since_nobody_may_log_in_there_now(scene: Scene) -> None:
    """Such as when the key of its machine has changed; it is said all the same."""
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    scene.world.logins.put(HostUnfit("another key", where="h1"))
    scene.world.logins.put(HostUnfit("another key", where="h1"))
    scene.world.cut.set()
    scene.until(lambda: scene.world.tried == 4)
    assert scene.process.trouble == "h1: another key"
    assert scene.lost == [], "its lease is what counts"
    scene.process.give_up()  # it is over
    scene.process.ensure(CONFIG)
    scene.world.logins.put(HostUnfit("another key", where="h1"))
    scene.until(lambda: scene.lost)
    assert scene.lost == [Loss("h1: another key", hopeless=True)]


def test_an_agent_that_ended_behind_a_cut_link_is_lost(scene: Scene) -> None:
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    scene.world.pid = 0
    scene.world.logins.put(None)
    scene.world.cut.set()
    scene.until(lambda: scene.lost)
    assert scene.lost == [Loss("its process ended")]


def test_one_that_a_head_before_had_left_is_told_apart(scene: Scene) -> None:
    scene.world.pid = 77
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 77)
    scene.world.pid = 0
    scene.process.look(60.0)
    scene.until(lambda: scene.lost)
    assert scene.lost[0].left_by_another
    scene.process.ensure(CONFIG)
    scene.until(lambda: scene.process.pid == 101)
    scene.world.pid = 0
    scene.process.look(60.0)
    scene.until(lambda: len(scene.lost) == 2)
    assert not scene.lost[1].left_by_another


def test_a_new_machine_that_cannot_be_reached_is_given_up_after_some_tries(scene: Scene) -> None:
    scene.process.ensure(CONFIG)
    for _ in range(process.FIRST_TRIES - 1):
        scene.world.logins.put(HostUnreachable("refused", where="h1"))
    scene.until(lambda: scene.world.tried == process.FIRST_TRIES)
    assert scene.lost == []
    scene.world.logins.put(HostUnreachable("refused", where="h1"))
    scene.until(lambda: scene.lost)
    assert scene.lost == [Loss("h1: refused", hopeless=True)]
    scene.process.give_up()
    scene.process.ensure(CONFIG)
    for _ in range(5):
        scene.world.logins.put(HostUnreachable("refused"))
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101, "tried on, and back")
    assert len(scene.lost) == 1, "said once"


def test_one_on_which_trials_may_run_is_waited_for() -> None:
    """However often it cannot be reached: what counts is for how long."""
    scene = Scene(known=True, patience_s=math.inf)
    scene.process.ensure(CONFIG)
    for _ in range(2 * process.FIRST_TRIES):
        scene.world.logins.put(HostUnreachable("silence"))
    scene.until(lambda: scene.world.tried > 2 * process.FIRST_TRIES)
    assert scene.lost == []
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    scene.process.leave()


def test_one_on_which_trials_may_run_is_not_waited_for_without_end() -> None:
    scene = Scene(known=True, patience_s=0.0)
    scene.process.ensure(CONFIG)
    scene.world.logins.put(HostUnreachable("silence"))
    scene.until(lambda: scene.lost)
    assert scene.lost == [Loss("silence")], "not hopeless: it may come back"
    scene.world.logins.put(ConnectionLost("the test is over"))
    scene.process.leave()


def test_what_trying_again_does_not_mend_is_said_at_once(scene: Scene) -> None:
    scene.process.ensure(CONFIG)
    scene.world.logins.put(HostUnfit("has no numpy", where="h1"))
    scene.until(lambda: scene.lost)
    assert scene.lost == [Loss("h1: has no numpy", hopeless=True)]
    assert scene.process.trouble == "h1: has no numpy"


def test_a_visit_that_would_end_its_program_does_not_end_its_thread(scene: Scene) -> None:
    """A library calls ``sys.exit``. Mutation: nobody ever visits again, nor says why."""
    scene.world.logins.put(SystemExit(2))
    scene.process.ensure(CONFIG)
    scene.until(lambda: scene.lost)
    assert scene.lost == [Loss("SystemExit: 2", hopeless=True)]


def test_a_reason_that_is_no_utf8_can_be_written_down(scene: Scene) -> None:
    """Mutation: the journal cannot hold it, and the head ends."""
    scene.world.logins.put(HostUnfit("caf\udce9"))
    scene.process.ensure(CONFIG)
    scene.until(lambda: scene.lost)
    assert scene.lost == [Loss("caf\\udce9", hopeless=True)]
    assert scene.process.trouble == "caf\\udce9"


def test_at_the_end_it_is_tried_once_more_whatever_the_pause(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the pause goes on, and the agent is left behind on a machine that is mended."""
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    monkeypatch.setattr(process, "HOPELESS_PAUSE_S", 1000.0)
    monkeypatch.setattr(process, "LONGEST_HOPELESS_PAUSE_S", 1000.0)
    scene.world.logins.put(HostUnfit("another key"))
    scene.world.cut.set()
    scene.until(lambda: scene.process.trouble == "another key")
    scene.world.logins.put(None)
    scene.process.end(process.time.monotonic() + 100.0)
    assert scene.world.did[-2:] == ["end", "left"]


def test_at_the_end_an_attempt_that_had_begun_before_is_not_the_last(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: whether it was ending is asked after the attempt, not before."""
    monkeypatch.setattr(process, "HOPELESS_PAUSE_S", 1000.0)
    monkeypatch.setattr(process, "LONGEST_HOPELESS_PAUSE_S", 1000.0)
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.process.pid == 101)
    scene.world.cut.set()
    scene.until(lambda: scene.world.tried == 2, "it is on its way there")
    until = process.time.monotonic() + 100.0
    ending = threading.Thread(target=scene.process.end, args=(until,))
    ending.start()
    scene.until(lambda: scene.process._end_by is not None)
    scene.world.logins.put(HostUnfit("another key"))
    scene.world.logins.put(None)
    ending.join()
    assert scene.world.did[-2:] == ["end", "left"]


def test_a_head_that_does_not_lead_any_more_touches_nothing() -> None:
    """Mutation: ``leads`` is not asked in the thread."""
    scene = Scene(leads=lambda: False)
    scene.process.ensure(CONFIG)
    scene.world.logins.put(None)
    scene.until(lambda: scene.world.did == ["login", "left"])
    scene.process.leave()
    assert scene.world.did == ["login", "left"]


def test_the_wait_for_a_machine_that_does_not_answer_is_bounded(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It hangs in its login when the experiment ends: nobody waits for that."""
    monkeypatch.setattr(process, "CLOSE_S", 0.05)
    scene.process.ensure(CONFIG)
    scene.until(lambda: scene.world.tried == 1)
    scene.process.end(process.time.monotonic())
    assert scene.process.pid is None


def test_one_of_another_version_is_known_until_it_is_given_up(scene: Scene) -> None:
    scene.world.pid, scene.world.outdated = 7, True
    scene.world.logins.put(None)
    scene.process.ensure(CONFIG)
    scene.until(lambda: scene.process.pid == 7)
    assert scene.process.outdated
    scene.process.give_up()
    assert not scene.process.outdated
    scene.world.outdated = False
    scene.process.ensure(CONFIG)
    scene.until(lambda: scene.process.pid == 101)
    assert scene.world.did == ["login", "take up", "end", "start"]
    assert not scene.process.outdated


def test_a_visit_of_another_package_need_not_tell_versions_apart(scene: Scene) -> None:
    """Mutation: every visit is asked whether the agent is outdated."""
    del scene.world.outdated
    scene.world.logins.put(None)
    scene.process.ensure(CONFIG)
    scene.until(lambda: scene.process.pid == 101)
    assert not scene.process.outdated
