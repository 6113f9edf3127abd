"""What is handed to an engine arrives, whether or not the engine was there."""

from __future__ import annotations

import queue
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.head.engine_inbox import EngineInbox
from dispatcher.head.head import Head


class Engine:
    """Takes facts."""

    def __init__(self) -> None:
        self.heard: list[e.Event] = []
        self.abandoned = False
        self.state: Any = SimpleNamespace(results_seen=7)

    def post(self, event: e.Event) -> None:
        self.heard.append(event)

    def abandon(self) -> None:
        self.abandoned = True


def stop(reason: str) -> e.Event:
    return e.StopRequested(e.StopKind.NOW, reason)


def test_what_came_before_the_engine_comes_first_and_once() -> None:
    """Mutations: only the last of them is kept, or they are handed to each engine again."""
    inbox, engine = EngineInbox(), Engine()
    inbox.post(stop("first"))
    inbox.post(stop("second"))
    assert inbox.state is None
    inbox.connect(engine)  # type: ignore[arg-type]
    inbox.post(stop("third"))
    assert engine.heard == [stop("first"), stop("second"), stop("third")]
    assert inbox.state is engine.state


def test_nothing_is_lost_while_the_engine_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: ``post`` looks for the engine only before it leaves the fact waiting."""
    engine = Engine()

    class Late(queue.SimpleQueue[e.Event]):
        """The engine comes between the look for it and the wait."""

        def put(self, item: e.Event, block: bool = True, timeout: float | None = None) -> None:
            inbox.connect(engine)  # type: ignore[arg-type]
            super().put(item, block, timeout)

    late = SimpleNamespace(SimpleQueue=Late, Empty=queue.Empty)
    monkeypatch.setattr("dispatcher.head.engine_inbox.queue", late)
    inbox = EngineInbox()
    inbox.post(stop("in between"))
    assert engine.heard == [stop("in between")]


def test_an_engine_that_is_not_there_needs_no_end() -> None:
    inbox, engine = EngineInbox(), Engine()
    inbox.abandon()
    inbox.connect(engine)  # type: ignore[arg-type]
    assert not engine.abandoned
    inbox.abandon()
    assert engine.abandoned


def test_a_head_that_does_not_lead_yet_takes_stops_and_has_no_state(tmp_path: Path) -> None:
    head = Head(tmp_path)
    head.request_stop("now", "changed my mind")
    assert head.state is None
    assert head.trials_over == 0
