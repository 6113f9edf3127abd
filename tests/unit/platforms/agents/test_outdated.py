"""An agent of another version goes on while it has something to run, and is then replaced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from tests.unit.platforms.local.test_leases import LOCAL, Scene
from trial_runtime import facts, wire
from trial_runtime.fact_wire import encode_fact
from trial_runtime.facts import EndReason


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    process = Popen(["sleep", "600"])
    one = Scene(tmp_path, process)
    one.backend._process.outdated = True  # type: ignore[misc]
    yield one
    process.kill()
    process.wait()


def end_of(trial: int, attempt: int = 1, *, first: int = 1) -> wire.AttemptMessages:
    return wire.AttemptMessages(
        first, [encode_fact(facts.AttemptEnded(trial, attempt, EndReason.FINISHED, 0))]
    )


def beat(scene: Scene) -> list[e.Event]:
    scene.hear(wire.Heartbeat("a", 1, 0))
    return scene.wait(0.5)


def test_it_is_replaced_when_the_last_end_is_on_disk(scene: Scene) -> None:
    """Mutations: it is replaced at once; what it said and is on no disk yet is lost with it."""
    scene.hello()
    assert beat(scene) == []
    (ended,) = scene.hear(end_of(1))
    assert isinstance(ended, e.AttemptEnded)
    assert beat(scene) == [], "that end is on no disk yet"
    scene.backend.acknowledge()
    (lost,) = beat(scene)
    assert isinstance(lost, e.WorkerLost)
    assert "another version" in lost.reason
    assert not lost.hopeless
    assert scene.link.said[-2:] == [wire.Ack(1), wire.Shutdown(0.0)], "or its spool tells all again"


def test_it_gets_nothing_new(scene: Scene) -> None:
    (joined,) = scene.hello()
    assert isinstance(joined, e.WorkerJoined)
    assert (joined.slots, joined.holds) == (0, ((1, 1),))


def test_what_it_was_given_all_the_same_runs_first(scene: Scene) -> None:
    scene.hello()
    scene.backend.perform(a.StartAttempt(LOCAL, TrialId(2), 1, "{}"))
    scene.hear(end_of(1))
    scene.backend.acknowledge()
    assert beat(scene) == []
    scene.hear(end_of(2, first=2))
    scene.backend.acknowledge()
    assert [type(event) for event in beat(scene)] == [e.WorkerLost]


def test_one_of_this_version_stays(scene: Scene) -> None:
    scene.backend._process.outdated = False  # type: ignore[misc]
    (joined,) = scene.hello()
    assert isinstance(joined, e.WorkerJoined)
    assert joined.slots == 2
    scene.hear(end_of(1))
    scene.backend.acknowledge()
    assert beat(scene) == []
