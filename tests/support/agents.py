"""Machines with agents on them: the product's own words, numbers and acknowledgements on both
sides of a bad line, and attempts by dice.

Real are the head's driver, the agent's outbox with its spool, and its side of the protocol.
Scripted are the processes, the line between (:mod:`tests.support.network`) and fate.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dispatcher.backends.local.driver import LocalBackend
from dispatcher.channel import Said
from dispatcher.core import actions as a
from dispatcher.core.model import EndReason
from tests.support.network import Line
from tests.support.sim_agent import GRACE_S, HEARTBEAT_S, SimAgent
from trial_runtime import wire
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint

if TYPE_CHECKING:
    from tests.support.world import World

#: Leases of this world, in seconds.
SUSPECT_S = 4.0
LOST_S = 9.0


class Host:
    """A machine: its agent, if one lives, and the line to it. Implements ``ports.Link``."""

    def __init__(self, world: World, name: str, slots: int, folder: Path) -> None:
        self.world = world
        self.name = name
        self.slots = slots
        self.agent: SimAgent | None = None
        self.lives = 0
        self.up = Line(world, self._at_the_head, overtaking=True)
        self.down = Line(world, self._at_the_agent)
        self.config = AgentConfig(
            worker=name,
            slots=slots,
            head=Endpoint("ipc://nowhere"),
            epoch=0,
            run_folder=str(folder),
            experiment_folder=str(folder),
            trial=TrialSpec(str(folder), command="true"),
            weights_root=str(folder),
            heartbeat_s=HEARTBEAT_S,
            head_grace_s=GRACE_S,
            experiment="simulated",
        )

    @property
    def cut(self) -> bool:
        """Whether nothing gets through."""
        return self.up.cut

    def _at_the_head(self, frame: bytes) -> list[Said] | None:
        return [Said(self.name, self.name.encode(), frame)]

    def _at_the_agent(self, frame: bytes) -> None:
        if self.agent is not None:
            self.agent.hear(frame)

    def send(self, payload: bytes) -> bool:
        """See ``ports.Link``."""
        self.down.send(payload)
        return True

    def renew(self, routing_id: str) -> None:
        """See ``ports.Link``; an agent keeps its name."""

    # -- fate ------------------------------------------------------------------------------

    def reset(self) -> None:
        """The connection breaks and stands again."""
        self.world.note(f"the connection to {self.name} breaks and stands again")
        self.up.reset()
        self.down.reset()

    def cut_off(self, seconds: float) -> None:
        """Nothing gets through for a while."""
        self.world.note(f"{self.name} is cut off for {seconds:.1f} s")
        self.up.cut = self.down.cut = True
        self.up.reset()
        self.down.reset()
        self.world.later(seconds, self._heal)

    def _heal(self) -> None:
        self.up.cut = self.down.cut = False

    def die(self) -> None:
        """The agent's process is killed, and its trials with it."""
        if self.agent is not None:
            self.world.note(f"the agent of {self.name} is killed")
            self.agent.die()

    def freeze(self, seconds: float) -> None:
        """The agent stands still; what it is told waits."""
        if self.agent is not None:
            self.world.note(f"the agent of {self.name} stands still for {seconds:.1f} s")
            self.agent.freeze(seconds)


class SimProcess:
    """As :class:`dispatcher.backends.local.process.AgentProcess`, on a machine of ours. What is
    on a machine that is cut off can neither be seen nor killed."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.pid: int | None = None

    @property
    def alive(self) -> bool:
        agent = self._host.agent
        return self._host.cut or (agent is not None and agent.number == self.pid)

    def find(self) -> bool | None:
        agent = self._host.agent
        if agent is None:
            return None
        self.pid = agent.number
        return True

    def write_config(self, config: AgentConfig) -> None:
        """Agents find their head here without."""

    def launch(self, config: AgentConfig) -> None:
        self._host.agent = SimAgent(self._host, config)
        self.pid = self._host.agent.number

    def kill(self) -> None:
        if self._host.agent is not None and not self._host.cut:
            self._host.agent.die()

    def wait_until_gone(self, _until: float) -> bool:
        return True

    def forget(self) -> None:
        self.pid = None


class SimBackend(LocalBackend):
    """The head's driver; only processes are not real."""

    def __init__(self, host: Host, epoch: int) -> None:
        self._host = host
        self._world = host.world
        config = replace(host.config, epoch=epoch)
        clock = lambda: host.world.now  # noqa: E731 - the world's time, monotonic by nature
        super().__init__(host, config, suspect_s=SUSPECT_S, lost_s=LOST_S, clock=clock)
        self._process = SimProcess(host)  # type: ignore[assignment]

    def perform(self, action: a.WorkerAction) -> None:
        """See the port; notes what the agent is ordered."""
        self._world.step(f"perform {type(action).__name__}")
        if isinstance(action, a.StartAttempt):
            self._world.ordered(action)
        super().perform(action)

    def flush(self) -> None:
        """See the port."""
        self._world.step("flush to agents")
        super().flush()

    def acknowledge(self) -> None:
        """See the port."""
        self._world.step("acknowledge")
        super().acknowledge()

    def _sweep(self) -> None:
        """Trials end with their agent here."""

    def speak_after_death(self) -> None:
        """A head that was believed dead goes on giving orders, and believes all it heard
        to be safe. Only an agent that knows its successor may hear them."""
        agent = self._host.agent
        if agent is None or agent.link.epoch <= self._config.epoch:
            return
        orders: list[wire.FromHead] = [wire.Ack(agent.outbox.newest)]
        for trial, attempt in list(agent.processes):
            orders.append(wire.Stop(trial, attempt, EndReason.KILLED.value, 0.0))
            orders.append(wire.Start(trial, attempt + 1, "{}", f"t/{trial}"))
        self._send(orders)
