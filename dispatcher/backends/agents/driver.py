"""The head's side of one agent, wherever its process runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from dispatcher.backends.agents.holding import Holding
from dispatcher.backends.agents.identity import agent_routing_id
from dispatcher.backends.agents.message_check import WordCheck
from dispatcher.backends.agents.process import AgentProcess, Loss
from dispatcher.backends.agents.self_report import SelfReport, Statistics
from dispatcher.backends.agents.speech import ACKNOWLEDGE_EVERY, Speech
from dispatcher.backends.agents.translation import (
    answer_order,
    offer_of,
    start_order,
    stop_order,
)
from dispatcher.core.actions import (
    AnswerOffer,
    LaunchWorker,
    StartAttempt,
    StopAttempt,
    WorkerAction,
)
from dispatcher.core.events import (
    AttemptEnded,
    Event,
    WorkerHeard,
    WorkerJoined,
    WorkerLost,
    WorkerOffers,
    WorkerSuspect,
)
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from dispatcher.errors import ProtocolError, Superseded
from dispatcher.ports import PeerLink
from trial_runtime import wire
from trial_runtime.agent.config import AgentConfig
from trial_runtime.silence import Silence

#: What counts as silence of the agent between two calls of ``check`` at most (seconds): less
#: than any lease, so that none ends by a pause of our own.
STEP_S = 1.0

#: What an agent may take until it has joined, however short its lease (seconds): a machine that
#: is busy starts processes slowly.
START_S = 60.0

#: The head speaks at least this often, so that an agent can tell a quiet head from a dead one.
PING_S = 1.0

#: What an agent that is replaced may take to leave by itself (seconds).
LEAVE_S = 10.0

_REPLACED = "its agent was of another version, and had nothing to run: it is replaced"

_log = logging.getLogger("bequeath.backends.agents")


class AgentDriver:
    """Watches and commands one agent; see :class:`dispatcher.ports.Backend`.

    The agent leads a session of its own and outlives this head: the next one finds it by
    its record and takes it up again.

    Args:
        link: a place on the head's ROUTER; it is renewed to the agent's own routing id, which
            is kept in the experiment's folder, so that a later head hears the same agent.
        config: what the agent is told; ``config.epoch`` is this head's epoch.
        process: how its process is had.
        folder: the experiment's folder on this machine.
        suspect_s: silence after which the agent is suspect: it gets nothing more to run.
        lost_s: silence after which a living agent is given up and killed, with all it runs.
        leads: whether this head still leads. One that does not, since it was stopped and
            another one has taken over, may judge and kill nobody.
        trouble_with_share: told which share of weights the agent has found, if it says that;
            a sentence, if it is the wrong one.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        link: PeerLink,
        config: AgentConfig,
        process: AgentProcess,
        folder: Path,
        *,
        suspect_s: float = 30.0,
        lost_s: float = 120.0,
        leads: Callable[[], bool] = lambda: True,
        trouble_with_share: Callable[[str], str] = lambda share: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        routing_id = agent_routing_id(folder, config.worker)
        link.renew(routing_id)
        self._config = replace(config, head=replace(config.head, routing_id=routing_id))
        self._suspect_s = suspect_s
        self._lost_s = lost_s
        self._leads = leads
        self._trouble_with_share = trouble_with_share
        self._silence = Silence(STEP_S, clock)
        self._suspect = False
        self._clock = clock
        self._worker = WorkerId(config.worker)
        self._process = process
        self._watched: int | None = None  # the process whose silence is counted
        self._life = ""  # of the agent that has joined
        self._trouble = ""  # why the agent that is there may not join
        self._joined = False
        self._received = 0  # number of the newest word taken from this life
        self._acknowledged = 0
        self._holding = Holding()
        self._report = SelfReport()
        self._check = WordCheck(config.worker, config.trial, clock)
        self._speech = Speech(link, routing_id, config.epoch, clock)
        self._unsendable: list[Event] = []  # ends of attempts whose orders no frame can carry
        self._closing = False
        self._parted = False

    # -- actions -------------------------------------------------------------------------------

    def perform(self, action: WorkerAction) -> None:
        """Carry out an action at the next :meth:`flush`; never blocks."""
        if isinstance(action, StartAttempt):
            self._start(action)
        elif isinstance(action, StopAttempt):
            self._speech.add(stop_order(action))
        elif isinstance(action, AnswerOffer):
            self._speech.add(answer_order(action))
        elif isinstance(action, LaunchWorker):
            self._launch()

    def _start(self, action: StartAttempt) -> None:
        if self._speech.add(start_order(action)):
            self._holding.given(action)
            self._check.given(action.trial, action.attempt)
            return
        text = (
            f"its parameters are too large to be sent to an agent: {len(action.parameters):,} "
            "characters of JSON; keep large things in files and pass their paths"
        )
        end = AttemptEnded(action.trial, action.attempt, EndReason.START_FAILED, text=text)
        self._unsendable.append(end)

    def acknowledge(self) -> None:
        """All words received are on disk; told to the agent at the next :meth:`flush`."""
        self._acknowledged = self._received

    def flush(self) -> None:
        """Send what was buffered as one frame; kept for the next time if it cannot go now.

        Acknowledgements alone wait for company, the next order, and go without one when nothing
        else was said for :data:`PING_S`: with many agents a head says little else.
        """
        if self._speech.owes(self._acknowledged) >= ACKNOWLEDGE_EVERY or self._speech.waiting:
            self._send_all()

    def _send_all(self) -> None:
        if self._joined:
            self._speech.send_all(self._acknowledged)

    # -- words ---------------------------------------------------------------------------------

    def receive(self, payload: bytes) -> list[Event]:
        """Decode what the agent said. Raises ``ProtocolError`` for what it may not say."""
        frame = self._check.read(payload)
        if frame is None:  # it is given up at the next check
            return []
        self._silence.heard()
        if frame.epoch > self._config.epoch:
            raise self._later_head(frame.epoch)
        if frame.epoch < self._config.epoch:
            # It still follows the head before; what it says will be said again to us.
            self._speech.welcome()
            return []
        events: list[Event] = []
        if self._suspect:
            self._suspect = False
            events.append(WorkerHeard(self._worker))
        for message in frame.messages:
            if isinstance(message, wire.Words):
                self._take(message, events)
            elif isinstance(message, wire.Heartbeat):
                self._report.heartbeat(message)
                # What was sent before this and is not here was lost with a connection.
                strange = message.life != self._life or message.newest < self._received
                if strange or message.sent > self._received:
                    self._speech.welcome()
            elif isinstance(message, wire.AgentHello):
                self._join(message, events)
            elif isinstance(message, wire.Offers):
                if self._joined and message.life == self._life:
                    events += self._news(message.offer)
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
        events, self._unsendable = self._unsendable, []
        now = self._clock()
        silent_s = self._silence.look()
        if not self._closing and self._leads():
            loss = self._process.look(silent_s)
            if loss is not None and loss.left_by_another and not self._joined:
                self._give_up()  # it left as we came; its successor has its spool
                self._launch()
                loss = None
            if loss is None and self._check.unheard and self._process.pid is not None:
                loss = Loss(self._check.unheard)
            if loss is None:
                silent_s = self._since_launch(silent_s)
                loss = self._loss_by_silence(silent_s)
            if loss is not None:
                events.append(self._lose(loss))
            elif self._may_be_replaced():
                self._speech.add(wire.Shutdown(0.0))  # behind the last acknowledgement
                self._send_all()
                events.append(self._lose(Loss(_REPLACED), LEAVE_S))
            elif silent_s > self._suspect_s and self._joined and not self._suspect:
                self._suspect = True
                events.append(WorkerSuspect(self._worker, silent_s))
        speech = self._speech
        if self._joined and now - speech.spoke_at >= PING_S:
            if not (speech.waiting or speech.owes(self._acknowledged)):
                speech.send([wire.Ping()])
            self._send_all()
        elif speech.waiting:  # which could not go before
            self._send_all()
        return events

    def _since_launch(self, silent_s: float) -> float:
        """The silence of this very process: what was before its launch is none of it."""
        if self._process.pid != self._watched:
            self._watched = self._process.pid
            self._silence.heard()
            return 0.0
        return silent_s

    def _loss_by_silence(self, silent_s: float) -> Loss | None:
        if self._process.pid is None:
            return None
        if silent_s <= (self._lost_s if self._joined else max(self._lost_s, START_S)):
            return None
        trouble = self._process.trouble  # such as a key that has changed
        return Loss(f"silent for {silent_s:.0f} s" + (f"; {trouble}" if trouble else ""))

    def _may_be_replaced(self) -> bool:
        """Whether it is one that a head of another version has left, has nothing more to run, and
        all that it said is on disk."""
        done = self._joined and not self._holding and self._acknowledged == self._received
        return done and self._process.outdated

    def waiting(self) -> str | None:
        """Why this backend runs nothing at the moment, in a sentence, or None."""
        silence, place = self._silence.seconds, self._process.place
        if self._process.pid is None:
            return self._process.trouble or f"the agent of {place} is not running"
        if not self._joined:
            return self._trouble or f"the agent of {place} has not joined yet"
        if silence > self._suspect_s:
            trouble = self._process.trouble
            text = f"the agent of {place} has been silent for {silence:.0f} s"
            return f"{text}; {trouble}" if trouble else text
        return None

    def statistics(self) -> Statistics:
        """A look at the agent."""
        return Statistics(
            self._process.pid,
            self._joined,
            self._report.running,
            self._silence.seconds,
            self._received,
            self._report.refused | self._check.refused.counts,
            self._report.samples,
        )

    # -- life and death ----------------------------------------------------------------------------

    def part(self, *, leave_running: bool, deadline_s: float) -> None:
        """Say goodbye, so that several agents can end at the same time; :meth:`close` waits."""
        self._send_all()
        self._parted = True
        if leave_running:
            return
        self._closing = True
        grace_s = min(self._config.trial.stop_grace_s, max(0.0, deadline_s - 1.0))
        if not (self._joined and self._speech.send([wire.Shutdown(grace_s)])):
            self._process.terminate()

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        """End the agent and all it runs, or leave it to wait for the next head.

        Blocks at most ``deadline_s`` and the moment that SIGKILL takes.
        """
        if not self._parted:
            self.part(leave_running=leave_running, deadline_s=deadline_s)
        if leave_running:
            self._process.leave()
            return
        self._process.end(time.monotonic() + deadline_s)
        self._forget()

    def _launch(self) -> None:
        if self._leads():
            self._process.ensure(self._config)
            self._silence.heard()
            self._check.launched()

    def _join(self, hello: wire.AgentHello, events: list[Event]) -> None:
        if hello.life == self._life and self._joined:
            # Said twice; the words that follow are told apart by their numbers. Those before
            # the first one were acknowledged: it does not have them any more.
            self._received = max(self._received, hello.first - 1)
            events += self._news(hello.offer)
            return
        expected = self._process.expects(hello.pid)
        if expected is None:
            return  # it will be heard again when we know which process to believe
        if not expected:
            # Given up, and back all the same. What it runs is not believed any more.
            _log.warning("agent %s (pid %d) was given up: it must leave", hello.worker, hello.pid)
            self._speech.dismiss(hello.life)
            return
        news = not hello.trouble or hello.trouble != self._trouble
        if news and not self._check.introduces_itself(len(hello.holds)):
            return
        if hello.trouble and not hello.hands_in:
            self._keep_out(hello, events)
            return
        wrong = self._trouble_with_share(hello.share)
        if wrong:  # the next one there will be told which it must find
            events.append(self._lose(Loss(wrong)))
            return
        self._life = hello.life
        self._trouble = ""
        self._joined = True
        self._received = self._acknowledged = hello.first - 1
        self._speech.begin(hello.life, hello.orders, self._received)
        held = set(hello.holds)
        self._holding.joined(held)
        self._check.joined(held)
        slots = min(hello.slots, self._config.slots)  # no machine takes more than it is to have
        if self._process.outdated:
            _log.info("agent %s is of another version: it gets nothing new", self._worker)
            slots = 0
        elif hello.trouble:
            _log.info("agent %s hands in what it has: %s", self._worker, hello.trouble)
            slots = 0
        events.append(
            WorkerJoined(
                self._worker,
                slots,
                tuple((TrialId(trial), attempt) for trial, attempt in sorted(held)),
                offer_of(None if hello.trouble else hello.offer),
            )
        )
        self._report.joined(hello)

    def _news(self, offer: wire.OfferTold | None) -> list[WorkerOffers]:
        """Of what it has for trials, if it is any."""
        if not (self._report.is_news(offer) and self._check.takes_news()):
            return []
        return self._report.offers(self._worker, offer)

    def _keep_out(self, hello: wire.AgentHello, events: list[Event]) -> None:
        """It is there, and says at each heartbeat why it can take nothing yet."""
        self._life, self._joined = hello.life, False
        self._speech.begin(hello.life, hello.orders)
        if hello.trouble != self._trouble:
            self._trouble = hello.trouble
            _log.warning("agent %s takes no trials: %s", self._worker, hello.trouble)
            # Without hope it is no worker of this experiment, though it goes on looking.
            hopeless = hello.hopeless
            lost = WorkerLost(self._worker, hello.trouble, hopeless, kept_out=not hopeless)
            events.append(lost)
        self._speech.send([wire.Ping()])  # or it would think that no head is there

    def _take(self, words: wire.Words, events: list[Event]) -> None:
        if not self._joined:
            self._speech.welcome()
            return
        new = words.messages
        known = self._received + 1 - words.first
        if known < 0:
            self._speech.welcome()  # some were lost on the way: all again
            return
        if known:
            new = new[known:]
        events += self._check.events_of(new)
        self._received += len(new)
        self._holding.ended(events)

    def _lose(self, loss: Loss, grace_s: float = 0.0) -> Event:
        _log.warning("agent %s is lost: %s", self._worker, loss.reason)
        self._give_up(grace_s)
        return WorkerLost(self._worker, loss.reason, loss.hopeless)

    def _give_up(self, grace_s: float = 0.0) -> None:
        self._process.give_up(grace_s)
        self._forget()

    def _forget(self) -> None:
        self._joined = False
        self._suspect = False
        self._life = ""
        self._trouble = ""
        self._report.gone()
        self._speech.forget()
