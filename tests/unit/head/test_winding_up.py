"""A head ends what it has begun in order, and nothing before its engine has ended."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.errors import ProtocolError
from dispatcher.head import led_experiment
from dispatcher.head.engine_inbox import EngineInbox
from dispatcher.head.led_experiment import LedExperiment, Rooms
from dispatcher.notices import Notice, NoticeKind
from trial_runtime.masking import Mask

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


def _led(
    told: list[Notice],
    engine: Any,
    *,
    leads: bool = True,
    grace_s: float = 0.0,
) -> LedExperiment:
    def tell(notice: Notice) -> None:
        told.append(notice)
        if len(told) == 2:
            engine.written.set()

    folder: Any = SimpleNamespace(id="nowhere")
    config: Any = SimpleNamespace(trial_stop_grace=grace_s, fed=())
    leadership: Any = SimpleNamespace(holds=leads)
    log: Any = SimpleNamespace(info=lambda *_, **__: None)
    inbox = EngineInbox()
    inbox.connect(engine)
    return LedExperiment(folder, config, leadership, Mask(), log, tell, inbox)


Calls = dict[str, tuple[tuple[Any, ...], dict[str, Any]]]


def _rooms(order: list[str], engine: Any, calls: Calls | None = None) -> Rooms:
    def closes(name: str) -> Any:
        def close(*given: Any, **named: Any) -> None:
            assert not engine.is_alive(), "two threads would use its sockets"
            order.append(name)
            if calls is not None:
                calls[name] = given, named

        return close

    tuner: Any = SimpleNamespace(close=closes("tuner"))
    crew: Any = SimpleNamespace(close=closes("crew"))
    logs: Any = SimpleNamespace(close=closes("logs"))
    files: Any = SimpleNamespace(finish=closes("files"))
    unused: Any = None
    return Rooms(engine, tuner, crew, logs, files, unused, unused, unused)


def test_nothing_is_closed_while_the_engine_still_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(led_experiment, "ENGINE_EXIT_S", 0.01)
    told: list[Notice] = []
    order: list[str] = []
    engine = Engine()
    engine.start()
    _led(told, engine).wind_up(_rooms(order, engine))
    assert engine.abandoned
    assert order == ["tuner", "crew", "logs", "files"]
    assert {notice.kind for notice in told} == {NoticeKind.DISK}
    assert "does not answer" in told[0].text


def test_an_engine_that_never_began_is_not_waited_for() -> None:
    """What failed before it is what is told."""
    order: list[str] = []
    engine = Engine()
    _led([], engine).wind_up(_rooms(order, engine))
    assert order == ["tuner", "crew", "logs", "files"]


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
    led = _led([], engine, leads=leads, grace_s=33.0)
    if asked_to_leave:
        led.step_down()
    led.wind_up(_rooms([], engine, calls))
    done = leads and not asked_to_leave and fails is None
    assert calls == {
        "tuner": ((led_experiment.TUNER_EXIT_S if leads else 0.0,), {}),
        "crew": ((), {"leave_running": not done, "deadline_s": led_experiment.AGENT_EXIT_S + 33.0}),
        "logs": ((), {}),
        "files": ((led_experiment.FILES_EXIT_S if done else 0.0,), {}),
    }
