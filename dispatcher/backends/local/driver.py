"""The head's side of the agent on this machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from dispatcher.backends.local.identity import agent_routing_id
from dispatcher.backends.local.process import AgentProcess
from dispatcher.backends.local.translation import event_of, start_order, stop_order
from dispatcher.core.actions import LaunchWorker, StartAttempt, StopAttempt, WorkerAction
from dispatcher.core.events import Event, WorkerHeard, WorkerJoined, WorkerLost, WorkerSuspect
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.errors import ProtocolError, Superseded
from dispatcher.ports import Link
from trial_runtime import wire
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.sweep import kill_sessions_below
from trial_runtime.refusals import MOST_REASONS, Refusals
from trial_runtime.silence import Silence

#: Words after which an acknowledgement does not wait for an order to go with.
ACKNOWLEDGE_EVERY = 256

#: What counts as silence of the agent between two calls of ``check`` at most (seconds): less
#: than any lease, so that none ends by a pause of our own.
STEP_S = 1.0

#: What an agent may take until it has joined, however short its lease (seconds): a machine that
#: is busy starts processes slowly.
START_S = 60.0

#: The head speaks at least this often, so that an agent can tell a quiet head from a dead one.
PING_S = 1.0

#: Time given to an agent to answer a welcome before it is welcomed again.
WELCOME_EVERY_S = 0.5

#: Messages that an agent must not miss; the others are repeated, or made up for by the next.
_ORDERS = (wire.Start, wire.Stop, wire.Shutdown)

_log = logging.getLogger("bequeath.backends.local")


@dataclass(frozen=True, slots=True)
class Statistics:
    """A look at the agent, for ``top`` and ``doctor``."""

    pid: int | None
    joined: bool
    running: int
    silence_s: float
    words: int
    refused: dict[str, int]  # by the agent, from trials and strangers


class LocalBackend:
    """Starts, watches and commands one agent; see :class:`dispatcher.ports.Backend`.

    The agent leads a session of its own and outlives this head: the next one finds it by
    the record in the experiment's folder and takes it up again.

    Args:
        link: a place on the head's ROUTER; it is renewed to the agent's own routing id, which
            is kept in the experiment's folder, so that a later head hears the same agent.
        config: what the agent is told; ``config.epoch`` is this head's epoch.
        suspect_s: silence after which the agent is suspect: it gets nothing more to run.
        lost_s: silence after which a living agent is given up and killed, with all it runs.
        leads: whether this head still leads. One that does not, since it was stopped and
            another one has taken over, may judge and kill nobody.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        link: Link,
        config: AgentConfig,
        *,
        suspect_s: float = 30.0,
        lost_s: float = 120.0,
        leads: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        folder = Path(config.experiment_folder)
        routing_id = agent_routing_id(folder, config.worker)
        link.renew(routing_id)
        self._link = link
        self._config = replace(config, head=replace(config.head, routing_id=routing_id))
        self._suspect_s = suspect_s
        self._lost_s = lost_s
        self._leads = leads
        self._silence = Silence(STEP_S, clock)
        self._suspect = False
        self._clock = clock
        self._worker = WorkerId(config.worker)
        self._process = AgentProcess(folder, config.worker)
        self._life = ""  # of the agent that has joined
        self._joined = False
        self._received = 0  # number of the newest word taken from this life
        self._acknowledged = 0
        self._told = 0  # what the agent has been told of that
        self._orders = 0  # number of the newest order sent to this life
        self._welcomed_at = float("-inf")
        self._running = 0
        self._refused: dict[str, int] = {}
        self._unreadable = Refusals()
        self._spoke_at = clock()
        self._outgoing: list[wire.FromHead] = []
        self._lost_events: list[Event] = []
        self._closing = False

    # -- actions -------------------------------------------------------------------------------

    def perform(self, action: WorkerAction) -> None:
        """Carry out an action at the next :meth:`flush`; never blocks."""
        if isinstance(action, StartAttempt):
            self._outgoing.append(start_order(action))
        elif isinstance(action, StopAttempt):
            self._outgoing.append(stop_order(action))
        elif isinstance(action, LaunchWorker):
            self._launch()

    def acknowledge(self) -> None:
        """All words received are on disk; told to the agent at the next :meth:`flush`."""
        self._acknowledged = self._received

    def flush(self) -> None:
        """Send what was buffered as one frame; kept for the next time if it cannot go now.

        Acknowledgements alone wait for company: the next order, or the next :meth:`check`.
        """
        if self._acknowledged - self._told >= ACKNOWLEDGE_EVERY or self._outgoing:
            self._send_all()

    def _send_all(self) -> None:
        if not self._joined:
            return
        messages = self._outgoing
        if self._acknowledged > self._told:
            messages = [wire.Ack(self._acknowledged), *messages]
        if messages and self._send(messages):
            self._told = self._acknowledged
            self._outgoing = []

    # -- words ---------------------------------------------------------------------------------

    def receive(self, payload: bytes) -> list[Event]:
        """Decode what the agent said. Raises ``ProtocolError`` for what it may not say."""
        try:
            frame = wire.from_agent(payload)
        except wire.WireError as error:
            raise ProtocolError(f"agent {self._worker}: {error}") from error
        self._silence.heard()
        if frame.epoch > self._config.epoch:
            raise self._later_head(frame.epoch)
        if frame.epoch < self._config.epoch:
            # It still follows the head before; what it says will be said again to us.
            self._welcome()
            return []
        events: list[Event] = []
        if self._suspect:
            self._suspect = False
            events.append(WorkerHeard(self._worker))
        for message in frame.messages:
            if isinstance(message, wire.Words):
                self._take(message, events)
            elif isinstance(message, wire.Heartbeat):
                self._running = message.running
                self._refused = dict(islice(message.refused.items(), MOST_REASONS))
                # What was sent before this and is not here was lost with a connection.
                strange = message.life != self._life or message.newest < self._received
                if strange or message.sent > self._received:
                    self._welcome()
            elif isinstance(message, wire.AgentHello):
                self._join(message, events)
            else:
                raise self._later_head(message.epoch)
        return events

    def _later_head(self, epoch: int) -> ProtocolError | Superseded:
        """The agent knows of a head after this one. If nobody else does, it is mistaken."""
        ours = self._config.epoch
        text = f"agent {self._worker} follows a head of epoch {epoch}; this one is {ours}"
        return ProtocolError(text) if self._leads() else Superseded(text)

    def check(self) -> list[Event]:
        """Look after the agent: a process that died or went silent becomes an event."""
        events, self._lost_events = self._lost_events, []
        now = self._clock()
        silent_s = self._silence.look()
        if self._process.pid is not None and not self._closing and self._leads():
            if not self._process.alive:
                events += self._lose("its process ended")
            elif silent_s > (self._lost_s if self._joined else max(self._lost_s, START_S)):
                self._process.kill()
                events += self._lose(f"silent for {silent_s:.0f} s")
            elif silent_s > self._suspect_s and self._joined and not self._suspect:
                self._suspect = True
                events.append(WorkerSuspect(self._worker, silent_s))
        if self._joined and now - self._spoke_at >= PING_S:
            self._send([wire.Ping()])
        self._send_all()
        return events

    def waiting(self) -> str | None:
        """Why this backend runs nothing at the moment, in a sentence, or None."""
        silence = self._silence.seconds
        if self._process.pid is None:
            return "the agent of this machine is not running"
        if not self._joined:
            return "the agent of this machine has not joined yet"
        if silence > self._suspect_s:
            return f"the agent of this machine has been silent for {silence:.0f} s"
        return None

    def statistics(self) -> Statistics:
        """A look at the agent."""
        return Statistics(
            self._process.pid,
            self._joined,
            self._running,
            self._silence.seconds,
            self._received,
            self._refused | self._unreadable.counts,
        )

    # -- life and death ----------------------------------------------------------------------------

    def recover(self) -> bool:
        """Find the agent that a head before us has left running; false if there is none.

        Whatever a dead agent left behind is ended, so that no attempt runs twice.
        """
        if self._process.pid is not None:
            return True
        found = self._process.find()
        if found:
            _log.info("taking up agent %s (pid %s) again", self._worker, self._process.pid)
            self._silence.heard()
            # We may be at another address than the head before; its heartbeat, of the epoch
            # before ours, will be answered.
            self._process.write_config(self._config)
        elif found is False:
            self._sweep()
        return bool(found)

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        """End the agent and all it runs, or leave it to wait for the next head.

        Blocks at most ``deadline_s`` and the moment that SIGKILL takes.
        """
        self._send_all()
        if leave_running or self._process.pid is None:
            return
        self._closing = True
        give_up = time.monotonic() + deadline_s
        grace_s = min(self._config.trial.stop_grace_s, max(0.0, deadline_s - 1.0))
        if not (self._joined and self._send([wire.Shutdown(grace_s)])):
            self._process.terminate()
        if not self._process.wait_until_gone(give_up):
            self._process.kill()
            self._process.wait_until_gone(time.monotonic() + 5.0)
            self._sweep()
        self._forget()

    def _launch(self) -> None:
        if not self._leads() or self.recover():
            return
        try:
            self._process.launch(self._config)
        except OSError as error:
            reason = f"cannot start the agent: {error.strerror}"
            self._lost_events.append(WorkerLost(self._worker, reason))
            return
        self._silence.heard()

    def _join(self, hello: wire.AgentHello, events: list[Event]) -> None:
        if hello.life == self._life and self._joined:
            # Said twice; the words that follow are told apart by their numbers. Those before
            # the first one were acknowledged: it does not have them any more.
            self._received = max(self._received, hello.first - 1)
            return
        if self._process.pid not in (None, hello.pid):
            # Given up, and back all the same. What it runs is not believed any more.
            _log.warning("agent %s (pid %d) was given up: it must leave", hello.worker, hello.pid)
            farewell = wire.HeadFrame(self._config.epoch, [wire.Shutdown(0.0)])
            self._link.send(wire.frame(farewell))
            return
        self._life = hello.life
        self._joined = True
        self._received = self._acknowledged = self._told = hello.first - 1
        self._orders = hello.orders
        held = set(hello.holds)
        # Orders for an agent before this one are void: the core will give them again.
        self._outgoing = []
        events.append(
            WorkerJoined(
                self._worker,
                hello.slots,
                tuple((TrialId(trial), attempt) for trial, attempt in sorted(held)),
            )
        )

    def _take(self, words: wire.Words, events: list[Event]) -> None:
        if not self._joined:
            self._welcome()
            return
        new = words.words
        known = self._received + 1 - words.first
        if known < 0:
            self._welcome()  # some were lost on the way: all again
            return
        if known:
            new = new[known:]
        for raw in new:
            try:
                events.append(event_of(wire.decode_word(raw)))
            except (wire.WireError, ProtocolError) as error:
                # Skipped and counted: an agent repeats what is not taken, and all that it
                # has to say would wait behind a word that nobody will ever understand.
                if self._unreadable.count("unreadable word"):
                    _log.error("agent %s: %s", self._worker, error)
        self._received += len(new)

    def _welcome(self) -> None:
        """Ask for all again; once, while that is on its way: each of many frames behind a gap
        would ask for as many again."""
        now = self._clock()
        if now - self._welcomed_at >= WELCOME_EVERY_S:
            self._welcomed_at = now
            self._send([wire.Welcome()])

    def _send(self, messages: list[wire.FromHead]) -> bool:
        orders = self._orders + sum(isinstance(message, _ORDERS) for message in messages)
        frame = wire.HeadFrame(self._config.epoch, messages, orders)
        sent = self._link.send(wire.frame(frame))
        if sent:
            self._spoke_at = self._clock()
            self._orders = orders
        return sent

    def _lose(self, reason: str) -> list[Event]:
        _log.warning("agent %s is lost: %s", self._worker, reason)
        self._process.wait_until_gone(time.monotonic() + 1.0)
        self._forget()
        self._sweep()
        return [WorkerLost(self._worker, reason)]

    def _forget(self) -> None:
        self._process.forget()
        self._joined = False
        self._suspect = False
        self._life = ""
        self._outgoing = []

    def _sweep(self) -> None:
        """End the trials that a dead agent left: nobody else would, nor hear of their end."""
        if not self._leads():
            return  # they may be those of our successor's agent
        killed = kill_sessions_below(self._config.run_folder)
        if killed:
            _log.warning("ended %d processes that a dead agent left behind", killed)
