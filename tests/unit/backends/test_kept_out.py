"""An agent that may not join says why at each heartbeat; its head shows it and waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from dispatcher.core import events as e
from tests.unit.backends.test_local_leases import LOCAL, Scene
from trial_runtime import wire


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    process = Popen(["sleep", "600"])
    yield Scene(tmp_path, process)
    process.kill()
    process.wait()


def trouble(scene: Scene, text: str, life: str = "a") -> list[e.Event]:
    hello = wire.AgentHello(life, "local", 2, scene.process.pid, [], 1, trouble=text)
    return scene.hear(hello)


def test_it_is_told_once_and_again_when_it_changes(scene: Scene) -> None:
    assert trouble(scene, "not mounted") == [e.WorkerLost(LOCAL, "not mounted", kept_out=True)]
    assert trouble(scene, "not mounted") == []
    assert trouble(scene, "read-only") == [e.WorkerLost(LOCAL, "read-only", kept_out=True)]
    assert scene.backend.waiting() == "read-only"


def test_it_is_not_lost_for_want_of_words_and_hears_its_head(scene: Scene) -> None:
    """Mutation: no ping is sent, and the agent leaves when ``headGrace`` is over."""
    trouble(scene, "not mounted")
    for _ in range(100):
        assert scene.wait(1.0) == []
        sent = len(scene.link.said)
        assert trouble(scene, "not mounted") == []
        assert len(scene.link.said) > sent
    assert scene.process.poll() is None


def test_it_joins_when_its_host_is_mended(scene: Scene) -> None:
    trouble(scene, "not mounted")
    (joined,) = trouble(scene, "")
    assert isinstance(joined, e.WorkerJoined)
    assert scene.backend.waiting() is None


def test_its_words_are_not_believed_before(scene: Scene) -> None:
    trouble(scene, "not mounted")
    word = wire.encode_word(wire.Started(1, 1, 5))
    assert scene.hear(wire.Words(1, [word])) == []
