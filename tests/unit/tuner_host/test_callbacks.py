"""Who holds a callback, and which request waits for one."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.core.events import RequestEnd, RequestFailed
from dispatcher.nni.tuner import callbacks as callbacks_module
from dispatcher.nni.tuner.callbacks import Callbacks
from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.requests import Requests


def request(trial: int) -> Request:
    return Request(trial, lambda event: None)


def test_a_refusal_waits_only_while_a_callback_is_kept() -> None:
    callbacks = Callbacks(lambda text: None, lambda one, parameters: None)
    kept = callbacks.begin(1)
    assert callbacks.end(request(1), refused=True) is None
    assert callbacks.waiting() == [1]
    del kept
    callbacks.begin(2)  # which nobody keeps
    assert callbacks.end(request(2), refused=True) == (False, callbacks_module.NOTHING)
    assert callbacks.waiting() == [1]


def test_an_answer_is_not_lost_while_callbacks_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A trial may end in the midst of it, and another thread of the tuner answers. Mutation: the
    call is over, and no longer answered, before the request waits."""
    notes: list[str] = []
    brought: list[tuple[Request, Any]] = []
    callbacks = Callbacks(notes.append, lambda one, parameters: brought.append((one, parameters)))
    kept = callbacks.begin(3)
    monkeypatch.setattr(gc, "collect", lambda: kept(3, {"x": 1}))
    assert callbacks.end(request(3), refused=True) == (True, {"x": 1})
    assert (callbacks.waiting(), brought, notes) == ([], [], [])


class NoMoreTrialError(Exception):
    """As an author defines it."""


def test_a_request_that_is_cancelled_while_it_is_asked_waits_for_no_callback() -> None:
    """Whoever cancels finds nobody waiting yet. Mutation: it is not looked at again."""
    said: list[Any] = []
    one = Request(4, said.append)
    kept: list[Any] = []

    def generate(trial: int, callback: Any) -> Any:
        kept.append(callback)
        assert not requests.give_up(trial)
        one.cancelled = True
        raise NoMoreTrialError

    calls: Any = SimpleNamespace(takes_callback=True, generate=generate)
    door: Any = SimpleNamespace(enter=lambda request: None, leave=lambda request: None)
    rules: Any = None
    requests = Requests(
        calls,
        door,
        door,
        rules,
        lambda request: None,
        later=lambda propose: Callbacks(lambda text: None, propose),
    )
    requests.run(one)
    assert isinstance(said[-1], RequestFailed)
    assert (said[-1].kind, said[-1].trial) == (RequestEnd.CANCELLED, 4)
    assert not requests.give_up(4), "it is over"
