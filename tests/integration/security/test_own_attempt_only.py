"""A session speaks for its own attempt: also when processes outlive theirs in a warm worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agent.fake_head import FakeHead
from trial_runtime.facts import EndReason

#: Trial 1 leaves a process behind, which reports while trial 2 runs in the same worker.
FUNCTIONS = """
import os
from tests.support import hold
import trial_runtime
import trial_runtime.errors

def wait_for(name):
    hold.until(name)

def main(parameters):
    if parameters["n"] == 1:
        if os.fork() == 0:
            wait_for("second-runs")
            try:
                trial_runtime.report_intermediate(666.0)
            except trial_runtime.errors.TrialRuntimeError:
                pass  # if it was told in time
            open("tried", "w").close()
            wait_for("for-ever")
        return 1.0
    open("second-runs", "w").close()
    wait_for("tried")
    trial_runtime.report_intermediate(2.0)
    return 2.0

def breaks_its_channel(parameters):
    if parameters["n"] == 1:
        from trial_runtime.session import current
        link = current().link
        link._opened().send(b"\\xff not of ours")
        wait_for("for-ever")
    return 2.0
"""


@pytest.fixture
def make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., FakeHead]]:
    made: list[FakeHead] = []

    def one(function: str) -> FakeHead:
        folder: Path = tmp_path_factory.mktemp("w")
        options: dict[str, Any] = {"reuse": "inProcess", "function": function, "slots": 1}
        head = FakeHead(folder, **options)
        made.append(head)
        head.script(FUNCTIONS, "functions.py")
        head.launch()
        head.until(lambda: head.life, "hello")
        return head

    yield one
    for head in made:
        head.close()


def test_what_one_attempt_left_behind_does_not_speak_for_the_next(
    make: Callable[..., FakeHead],
) -> None:
    head = make("functions:main")
    head.start(1, parameters={"n": 1})
    assert head.end_of(1).reason == EndReason.FINISHED
    head.start(2, parameters={"n": 2})
    assert head.end_of(2).reason == EndReason.FINISHED
    assert head.metrics(2) == [2.0]
    assert head.metrics(1) == []
    head.until(
        lambda: head.heartbeats and head.heartbeats[-1].refused.get("superseded"), "its count"
    )


def test_a_worker_that_nobody_hears_any_more_is_replaced(make: Callable[..., FakeHead]) -> None:
    head = make("functions:breaks_its_channel")
    head.start(1, parameters={"n": 1})
    assert head.end_of(1).reason != EndReason.FINISHED  # and it does not hang for ever
    head.start(2, parameters={"n": 2})
    assert head.end_of(2).reason == EndReason.FINISHED
    assert head.finals(2) == [2.0]
