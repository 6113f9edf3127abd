"""An agent that has found another share than the others of its storage domain is not taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.platforms.agents.driver import AgentDriver
from dispatcher.platforms.agents.process import Loss
from tests.support.workers import agent_config
from trial_runtime import wire
from trial_runtime.agent.config import AgentConfig

GPU = WorkerId("gpu")


class Process:
    """One that is there."""

    place, trouble, pid, outdated, ends_at = "gpu", "", 7, False, None

    def __init__(self) -> None:
        self.given_up = 0

    def ensure(self, config: AgentConfig) -> None: ...
    def waiting(self) -> None: ...
    def look(self, silent_s: float) -> Loss | None:
        return None

    def expects(self, pid: int, ticket: str) -> bool | None:
        return True

    def give_up(self, grace_s: float = 0.0) -> None:
        self.given_up += 1


class Line:
    def send(self, payload: bytes) -> bool:
        return True

    def renew(self, routing_id: str) -> None: ...


def driver(folder: Path, judge: Any) -> tuple[AgentDriver, Process]:
    config = agent_config(folder, "gpu", domain="lake")
    process = Process()
    made = AgentDriver(Line(), config, process, folder, trouble_with_share=judge)  # type: ignore[arg-type]
    return made, process


def hello(share: str) -> bytes:
    said = wire.AgentHello("life", "gpu", 2, 7, [], 1, share=share)
    return wire.frame(wire.AgentFrame(1, [said]))


def test_one_with_the_wrong_share_is_lost_and_ended(tmp_path: Path) -> None:
    """Mutation: what is wrong with it is not asked."""
    one, process = driver(tmp_path, lambda share: "" if share == "right" else f"{share} is wrong")
    assert one.receive(hello("left")) == [e.WorkerLost(GPU, "left is wrong")]
    assert process.given_up == 1
    (joined,) = one.receive(hello("right"))
    assert isinstance(joined, e.WorkerJoined)
