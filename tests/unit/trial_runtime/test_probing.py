"""What an agent says of a weights root that is not as it should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.link.probing import RootProbe
from trial_runtime.endpoint import Endpoint

CONFIG = AgentConfig(
    worker="h1",
    slots=1,
    head=Endpoint("tcp://127.0.0.1:1"),
    epoch=1,
    run_folder="/r",
    experiment_folder="/e",
    trial=TrialSpec("/code", command="true"),
    weights_root="/w",
    root_token="t",
)


class Helper:
    """Looks come back when the test says so."""

    def __init__(self) -> None:
        self.done: list[Callable[[Any, Exception | None], None]] = []

    def submit(self, _job: Any, done: Callable[[Any, Exception | None], None]) -> None:
        self.done.append(done)


def test_a_share_that_is_slow_and_wrong_in_turns_is_not_told_again_and_again() -> None:
    """Mutation: that a look is slow is told whatever was found before."""
    told: list[str] = []
    helper, timers = Helper(), Timers()
    far = 1e12
    probe = RootProbe(CONFIG, helper, timers, told.append)  # type: ignore[arg-type]
    probe.look()
    timers.fire(far)
    assert "does not answer" in told[-1]
    for _ in range(3):
        helper.done[-1]("the weights root /w: no token", None)
        timers.fire(far)  # the next look, which is slow as well
        timers.fire(far)
    texts = [text for n, text in enumerate(told) if n == 0 or text != told[n - 1]]
    assert len(texts) == 2, texts
    helper.done[-1]("", None)
    assert told[-1] == ""
