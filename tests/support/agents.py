"""Machines with agents on them: the product's own words, numbers and acknowledgements on both
sides of a bad line, and attempts by dice.

Real are the head's driver, the agent's outbox with its spool, and its side of the protocol.
Scripted are the processes, the line between (:mod:`tests.support.network`) and fate.
"""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dispatcher.channel import PeerMessage
from dispatcher.channel.router import RouterLink
from dispatcher.core import actions as a
from dispatcher.core.model import EndReason
from dispatcher.core.resources import Offer
from dispatcher.platforms.agents.driver import AgentDriver
from dispatcher.platforms.agents.process import Loss, Waiting
from tests.support.network import Line
from tests.support.sim_agent import GRACE_S, HEARTBEAT_S, SimAgent
from tests.support.workers import LOCAL, agent_config
from trial_runtime import facts, wire
from trial_runtime.agent.config import AgentConfig
from trial_runtime.endpoint import MAX_MESSAGE_BYTES
from trial_runtime.retry import growing_pause

if TYPE_CHECKING:
    from tests.support.world import World

#: Leases of this world, in seconds.
SUSPECT_S = 4.0
LOST_S = 9.0


class _Socket:
    """One head's ROUTER, as far as the real link on it can tell: what is for whoever connects
    under an id goes to an agent or to its successor; who was never heard of, or is gone, cannot
    be sent to. What a link does then is its own affair."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known = False
        self.link = RouterLink(self, host.name, b"")  # type: ignore[arg-type]

    def send(self, _routing_id: bytes, payload: bytes) -> bool:
        """See ``Router.send``."""
        if self._host.agent is None or not self._known:
            return False
        self._host.down.send(payload)
        return True

    def rename(self, link: RouterLink, routing_id: bytes) -> None:
        """See ``Router.rename``."""
        link.routing_id = routing_id

    def heard(self) -> None:
        """The peer has said something, so it is there."""
        self._known = True
        self.link.flush()


class Host:
    """A machine: its agent, if one lives, and the line to it."""

    def __init__(
        self, world: World, name: str, slots: int, folder: Path, offer: Offer | None = None
    ) -> None:
        self.world = world
        self.name = name
        self.slots = slots
        self.offer = offer  # what it has now
        if offer is None and world.odds.walls:
            self.offer = Offer()  # its place has an end, whatever else is in it
        self.ends_at: float | None = None  # when its scheduler takes the place back
        self._places = self._in_vain = self.seconds = 0
        self.agent: SimAgent | None = None
        self.lives = 0
        self.ambushed = False  # its agent dies when it is to start something
        self.tripwire = False  # its connection breaks when it is to stop something
        self.trouble = ""  # why its agent may not join
        self.free_at = 0.0  # when its scheduler has a place for an agent
        self.taken: set[int] = set()  # numbers of agents whose place was taken back
        self.is_sick = world.odds.sick and name == "local"  # all that it runs fails
        self._heard_from = 0  # number of the newest agent that was heard of
        self.socket: _Socket | None = None  # of the head that leads
        self.up = Line(world, self._at_the_head, overtaking=True)
        self.down = Line(world, self._at_the_agent)
        self.config = agent_config(
            folder,
            name,
            slots=slots,
            epoch=0,
            heartbeat_s=HEARTBEAT_S,
            head_grace_s=GRACE_S,
            experiment="simulated",
        )

    @property
    def cut(self) -> bool:
        """Whether nothing gets through."""
        return self.up.cut

    def _at_the_head(self, frame: bytes, sender: int) -> list[PeerMessage] | None:
        if sender < self._heard_from:  # ROUTER_HANDOVER: a successor has taken its place
            return None
        self._heard_from = sender
        if len(frame) > MAX_MESSAGE_BYTES:
            self.reset()
            return None
        if self.socket is not None:
            self.socket.heard()
        return [PeerMessage(self.name, self.name.encode(), frame)]

    def _at_the_agent(self, frame: bytes, _sender: int) -> None:
        if len(frame) > MAX_MESSAGE_BYTES:  # as ZeroMQ has it: the connection is closed
            self.reset()
        elif self.agent is not None:
            self.agent.hear(frame)

    def connect(self) -> RouterLink:
        """A link of a head that begins, which has heard nobody yet."""
        self.socket = _Socket(self)
        return self.socket.link

    # -- fate ------------------------------------------------------------------------------

    def reset(self) -> None:
        """The connection breaks and stands again."""
        self.world.note(f"the connection to {self.name} breaks and stands again")
        self.up.reset()
        self.down.reset()

    def cut_off(self, seconds: float) -> None:
        """Nothing gets through for a while."""
        self.world.note(f"{self.name} is cut off for {seconds:.1f} s")
        self.world.harm(self.name)
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
            self.world.harm(self.name)
            self.agent.die()

    def take_away(self, seconds: float) -> None:
        """Its scheduler takes the place back, and has another one later."""
        self.world.note(f"the place of {self.name} is taken back for {seconds:.1f} s")
        self.world.harm(self.name)
        self.free_at = self.world.now + seconds
        if self.agent is not None:
            self.taken.add(self.agent.number)
            self.agent.die()

    def lend(self) -> None:
        """Its scheduler gives its agent a place, for a time that may be short. Some schedulers say
        for how long, and some ask an agent to go before they end it."""
        world, self._places = self.world, self._places + 1
        self.ends_at = None
        dice = random.Random(f"place {world.case.seed} {self.name} {self._places}")
        if dice.random() < world.odds.walls:
            left_s = dice.choice((4.0, 15.0, 40.0, 90.0))
            if dice.random() < 0.7:
                self.ends_at = world.now + left_s
            if dice.random() < 0.5:
                asks_s = left_s - dice.choice((0.5, 3.0))
                world.later(asks_s, partial(self._ask_to_go, self._places))
            world.later(left_s, partial(self._reach_wall, self._places))

    def _ask_to_go(self, place: int) -> None:
        if place == self._places and self.agent is not None:
            self.world.note(f"the scheduler of {self.name} asks its agent to go")
            self.world.harm(self.name)
            self.agent.asked_to_go()

    def _reach_wall(self, place: int) -> None:
        if place == self._places and self.agent is not None:
            self.world.reached_wall(self)
            self.take_away(0.0)

    def give_back(self, *, in_vain: bool) -> None:
        """Its head has no use for the place: the next one comes after a pause, if nothing could run
        there."""
        self._in_vain = self._in_vain + 1 if in_vain else 0
        if in_vain:
            self.free_at = self.world.now + growing_pause(self._in_vain, 1.0, 60.0)

    def start_second(self) -> None:
        """Its scheduler starts the same allocation a second time, elsewhere: an agent with the
        ticket of the first introduces itself in its place."""
        first = self.agent
        if first is None or not first.link.greeted:
            return
        self.world.note(f"a second agent of {self.name} is started")
        self.seconds += 1
        life = f"second{self.seconds}"
        hello = wire.AgentHello(
            life,
            self.name,
            self.slots,
            first.number,
            [],
            1,
            offer=first.offer(True),
            ticket=first.ticket,
            start=life,
        )
        self.up.send(wire.frame(wire.AgentFrame(first.link.epoch, [hello])), first.number)

    def freeze(self, seconds: float) -> None:
        """The agent stands still; what it is told waits."""
        if self.agent is not None:
            self.world.note(f"the agent of {self.name} stands still for {seconds:.1f} s")
            self.world.harm(self.name)
            self.agent.freeze(seconds)


class SimProcess:
    """Stands for an agent's process (`AgentProcess`) on a machine of ours. What is on a
    machine that is cut off can neither be seen nor killed. Trials end with their agent here."""

    trouble = ""
    outdated = False

    def __init__(self, host: Host) -> None:
        self._host = host
        self.place = host.name
        self.pid: int | None = None
        self._is_ours = False  # else a head before us had started it
        self._wanted: AgentConfig | None = None  # while there is no place for it

    def ensure(self, config: AgentConfig) -> None:
        if self.pid is None:
            self._wanted = config
            self._go_on()

    def _go_on(self) -> None:
        config = self._wanted
        if config is None or (self._host.agent is None and self._now < self._host.free_at):
            return
        self._wanted = None
        if self._host.agent is None:
            self._host.lend()
            config = replace(config, ticket=f"place {self._host.lives}")
            self._host.agent = SimAgent(self._host, config)
            self._is_ours = True
        self.pid = self._host.agent.number

    @property
    def _now(self) -> float:
        return self._host.world.now

    @property
    def ends_at(self) -> float | None:
        """By the clock of the head that leads, as a platform's list has it."""
        host = self._host
        return None if host.ends_at is None else host.world.as_head(host.ends_at)

    def look(self, _silent_s: float) -> Loss | None:
        self._go_on()
        agent, host = self._host.agent, self._host
        load = host.world.load_of(host)
        if self.pid is not None and load.spent and not load.busy:
            host.give_back(in_vain=not load.begun)
            return Loss(load.spent, planned=True, leaves=True)
        if self.pid is None or host.cut or (agent is not None and agent.number == self.pid):
            return None
        if self.pid in host.taken:
            return Loss("its place was taken back", planned=True)
        return Loss("its process ended", left_by_another=not self._is_ours)

    def waiting(self) -> Waiting | None:
        if self._wanted is None:
            return None
        return Waiting("Priority", 0.0)

    def expects(self, pid: int, ticket: str) -> bool | None:
        if self._wanted is not None:
            return None  # one whose place was taken back, and that is heard late
        return self.pid in (None, pid)

    def give_up(self, grace_s: float = 0.0) -> None:
        agent = self._host.agent
        if agent is not None and agent.number == self.pid and not self._host.cut:
            agent.die()
        self.pid = self._wanted = None
        self._is_ours = False

    def terminate(self) -> None: ...
    def end(self, until: float) -> None: ...
    def leave(self) -> None: ...


class SimBackend(AgentDriver):
    """The head's driver; only processes are not real."""

    def __init__(self, host: Host, epoch: int) -> None:
        self._host = host
        self._world = host.world
        self._stops = False
        config = replace(host.config, epoch=epoch)
        super().__init__(
            host.connect(),
            config,
            SimProcess(host),
            Path(config.experiment_folder),
            suspect_s=SUSPECT_S,
            lost_s=LOST_S,
            clock=lambda: host.world.now,  # the world's time, monotonic by nature
        )

    def perform(self, action: a.WorkerAction) -> None:
        """See the port; notes what the agent is ordered."""
        self._world.step(f"perform {type(action).__name__}")
        if isinstance(action, a.StartAttempt | a.AnswerOffer):
            self._world.ordered(action)
        if isinstance(action, a.StartAttempt) and self._host.ambushed:
            self._host.ambushed = False
            self._host.die()
        self._stops = self._stops or isinstance(action, a.StopAttempt)
        super().perform(action)

    def flush(self) -> None:
        """See the port."""
        self._world.step("flush to agents")
        super().flush()
        if self._stops and self._host.tripwire:
            self._host.tripwire = False
            self._host.reset()
        self._stops = False

    def acknowledge(self) -> None:
        """See the port."""
        self._world.step("acknowledge")
        super().acknowledge()

    def speak_after_death(self) -> None:
        """A head that was believed dead goes on giving orders, and believes all it heard
        to be safe. Only an agent that knows its successor may hear them."""
        agent = self._host.agent
        if agent is None or agent.link.epoch <= self._config.epoch:
            return
        orders: list[wire.FromHead] = [wire.Ack(agent.outbox.newest)]
        for trial, attempt in list(agent.processes):
            orders.append(facts.StopAttempt(LOCAL, trial, attempt, EndReason.KILLED, 0.0))
            orders.append(facts.StartAttempt(LOCAL, trial, attempt + 1, "{}", f"t/{trial}"))
        self._outbox.send(orders)
