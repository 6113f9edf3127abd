"""A head ends what it has begun in order, and nothing before its engine has ended."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.errors import ProtocolError
from dispatcher.head import head as head_module
from dispatcher.head.head import Head
from dispatcher.notices import Notice, NoticeKind

PATIENCE_S = 120.0


class Engine(threading.Thread):
    """Stands in a write that the disk does not finish."""

    error: Exception | None = None

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


Calls = dict[str, tuple[tuple[Any, ...], dict[str, Any]]]


def _others(order: list[str], engine: Engine, calls: Calls | None = None) -> tuple[Any, Any, Any]:
    def closes(name: str) -> Any:
        def close(*given: Any, **named: Any) -> None:
            assert not engine.is_alive(), "two threads would use its sockets"
            order.append(name)
            if calls is not None:
                calls[name] = given, named

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


@pytest.mark.parametrize("fails", [None, OSError("no space"), ProtocolError("nonsense")], ids=repr)
@pytest.mark.parametrize("asked_to_leave", [False, True])
@pytest.mark.parametrize("leads", [True, False])
def test_trials_end_with_a_head_that_has_done_its_work_and_with_no_other(
    fails: Exception | None, asked_to_leave: bool, leads: bool
) -> None:
    """Mutations: a disk that is full for a minute kills trials that have trained for days; a head
    that was taken over ends the trials of its successor, or has its own tuner say goodbye; trials
    get less time to stop than their file says; what they left elsewhere is not fetched."""
    calls: Calls = {}
    engine = Engine()
    engine.error = fails
    head = _head([], engine.written)
    head._config.trial_stop_grace = 33.0
    head._stepping_down = asked_to_leave
    head._leadership.holds = leads
    head._wind_up(engine, *_others([], engine, calls))
    done = leads and not asked_to_leave and fails is None
    assert calls == {
        "tuner": ((head_module.TUNER_EXIT_S if leads else 0.0,), {}),
        "crew": ((), {"leave_running": not done, "deadline_s": head_module.AGENT_EXIT_S + 33.0}),
        "files": ((head_module.FILES_EXIT_S if done else 0.0,), {}),
    }
