"""Which backends an engine sends to: those that it has something to tell."""

from __future__ import annotations

from typing import Any

from dispatcher.core import actions as a
from dispatcher.core import new_state
from dispatcher.core.ids import WorkerId
from dispatcher.core.settings import Settings
from dispatcher.engine import Engine


class Recorder:
    """A tuner's port or a backend that notes what it is asked to do."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def perform(self, action: a.Action) -> None:
        self.calls.append(type(action).__name__)

    def flush(self) -> None:
        self.calls.append("flush")


def test_of_many_backends_those_with_an_action_are_flushed_once() -> None:
    """Mutation: each turn asks a thousand that have nothing to send."""
    nobody: Any = None
    backends: dict[str, Any] = {f"w{number}": Recorder() for number in range(100)}
    tuner: Any = Recorder()
    engine = Engine(
        new_state(Settings(slots=1, lookahead=8)), nobody, nobody, tuner, backends, nobody, nobody
    )
    engine.begin([a.LaunchWorker(WorkerId(name)) for name in ("w7", "w3/host-1", "w7")])
    calls = {name: each.calls for name, each in backends.items() if each.calls}
    assert calls == {
        "w7": ["LaunchWorker", "LaunchWorker", "flush"],
        "w3": ["LaunchWorker", "flush"],
    }
    engine.begin([])
    assert calls["w7"].count("flush") == 1
