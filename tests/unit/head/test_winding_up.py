"""A head ends what it has begun in order, and nothing before its engine has ended."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher import head as head_module
from dispatcher.head import Head
from dispatcher.notices import Notice, NoticeKind

PATIENCE_S = 120.0


class Engine(threading.Thread):
    """Stands in a write that the disk does not finish."""

    error = None

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.written = threading.Event()
        self.abandoned = False

    def run(self) -> None:
        assert self.written.wait(PATIENCE_S)

    def abandon(self) -> None:
        self.abandoned = True


def _head(told: list[Notice], enough: threading.Event) -> Any:
    def tell(notice: Notice) -> None:
        told.append(notice)
        if len(told) == 2:
            enough.set()

    head: Any = Head(Path("nowhere"), on_notice=tell)
    head._leadership = SimpleNamespace(holds=True)
    head._config = SimpleNamespace(trial_stop_grace=0.0)
    head._board.log = SimpleNamespace(info=lambda *_, **__: None)
    return head


def _others(order: list[str], engine: Engine) -> tuple[Any, Any, Any]:
    def closes(name: str) -> Any:
        def close(*_: object, **__: object) -> None:
            assert not engine.is_alive(), "two threads would use its sockets"
            order.append(name)

        return close

    tuner = SimpleNamespace(close=closes("tuner"))
    crew = SimpleNamespace(close=closes("crew"))
    return tuner, crew, SimpleNamespace(finish=closes("files"))


def test_nothing_is_closed_while_the_engine_still_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_module, "ENGINE_EXIT_S", 0.01)
    told: list[Notice] = []
    order: list[str] = []
    engine = Engine()
    engine.start()
    head = _head(told, engine.written)
    head._wind_up(engine, *_others(order, engine))
    assert engine.abandoned
    assert order == ["tuner", "crew", "files"]
    assert {notice.kind for notice in told} == {NoticeKind.DISK}
    assert "does not answer" in told[0].text


def test_an_engine_that_never_began_is_not_waited_for() -> None:
    """What failed before it is what is told."""
    order: list[str] = []
    engine = Engine()
    _head([], engine.written)._wind_up(engine, *_others(order, engine))
    assert order == ["tuner", "crew", "files"]
