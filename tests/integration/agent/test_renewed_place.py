"""Agents of a scheduler that stops them and starts them anew, under the same ticket."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agent.fake_head import PATIENCE_S, FakeHead
from tests.integration.agent.test_nodes import Allocation
from trial_runtime import wire
from trial_runtime.agent.config import Renewal
from trial_runtime.facts import EndReason

RENEWAL = Renewal("RESTARTS", "REPLICAS", 143)

HOLD = """
import os, pathlib, signal
print(os.environ["CKPT"], flush=True)
pathlib.Path("there").touch()
signal.pause()
"""


class Lent(FakeHead):
    """A head with an agent in a place that is renewed."""

    def group(self, number: int) -> None:
        """Start the agent of a group, as its scheduler does."""
        if self.process is not None:
            self.die()  # with what the one before has sent at last
            self.live_again()
        self.agent_environment = {**os.environ, "RESTARTS": str(number), "REPLICAS": "1"}
        self.launch()
        self.until(lambda: self.life, "hello")

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        if self.socket is not None:
            self.socket.close(linger=0)
        self.context.term()


@pytest.fixture
def lent(tmp_path: Path) -> Iterator[Lent]:
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:
        made = Lent(
            Path(folder).resolve(),
            ticket="a ticket",
            renewal=RENEWAL,
            command=f"{sys.executable} train.py",
            checkpoint_variable="CKPT",
        )
        (made.code / "train.py").write_text(HOLD)
        try:
            yield made
        finally:
            made.close()


def test_an_agent_that_was_asked_to_go_says_that_it_comes_again(lent: Lent) -> None:
    """What runs there hands over first. Mutation: it leaves with success, for which its scheduler
    believes that all is done."""
    lent.group(0)
    lent.start(1)
    lent.until((lent.code / "there").exists, "the trial runs")
    assert lent.process is not None
    lent.process.send_signal(signal.SIGTERM)
    assert lent.end_of(1).reason == EndReason.PREEMPTED
    assert any(beat.leaving for beat in lent.heartbeats)
    assert lent.process.wait(PATIENCE_S) == 143
    checkpoints = lent.output(1).strip()
    assert checkpoints.startswith(str(lent.weights)), "a folder of the trial's own"
    lent.group(1)
    assert [each.restarts for each in lent.hellos[-1:]] == [1]
    assert len({each.start for each in lent.hellos}) == 2
    lent.send(wire.Shutdown(0.0))
    assert lent.process.wait(PATIENCE_S) == 0, "its head has sent it away: that is all"


def test_a_variable_of_the_users_own_counts(lent: Lent) -> None:
    lent.changes["environment"] = {"CKPT": "/mine"}
    lent.group(0)
    lent.start(1)
    lent.until((lent.code / "there").exists, "the trial runs")
    lent.until(lambda: lent.output(1), "it has printed")
    assert lent.output(1).strip() == "/mine"


SHOW = """
import os
print(os.environ["WORLD_SIZE"], os.environ["RANK"], flush=True)
"""


class Group(Allocation):
    """Agents of one group, of which there may be fewer than the file's nodes."""

    nodes = 3
    number, replicas = 0, 3

    def launch(self) -> None:
        os.environ |= {"RESTARTS": str(self.number), "REPLICAS": str(self.replicas)}
        path, self.nodes = self.folder / "agent.config", 3
        from trial_runtime.agent.config import encode_config

        path.write_bytes(encode_config(self.config()))
        self.agents = [self.launch_node(rank) for rank in range(self.replicas)]
        self.process = self.agents[0]


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Group]]:
    monkeypatch.setenv("RESTARTS", "")
    monkeypatch.setenv("REPLICAS", "")
    made: list[Group] = []
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:

        def make(**changes: Any) -> Group:
            head = Group(
                Path(folder).resolve(),
                command=f"{sys.executable} train.py",
                renewal=RENEWAL,
                **changes,
            )
            head.script(SHOW)
            made.append(head)
            return head

        try:
            yield make
        finally:
            for head in made:
                head.close()


def test_a_group_may_have_fewer_nodes_than_the_one_before(group: Callable[..., Group]) -> None:
    """Down to one. Mutations: the nodes that do not come are waited for; the second group finds the
    mark that the first one is over, and nobody comes in."""
    head = group()
    for number, replicas in enumerate((3, 2, 1), 1):
        head.number, head.replicas = number, replicas
        head.launch()
        head.until(lambda: head.life, "hello")
        assert head.run(number).reason == EndReason.FINISHED
        assert head.output(number).split() == [str(replicas), "0"]
        os.kill(head.agents[-1].pid, signal.SIGTERM)
        codes = [agent.wait(PATIENCE_S) for agent in head.agents]
        assert codes[0] == 143, "the one that speaks says that they come again"
        head.die()
        head.live_again()
