"""The head's side of one agent, wherever its process runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from dispatcher.core.actions import (
    AnswerOffer,
    LaunchWorker,
    StartAttempt,
    StopAttempt,
    WorkerAction,
)
from dispatcher.core.events import (
    Event,
    WorkerHeard,
    WorkerJoined,
    WorkerLost,
    WorkerOffers,
    WorkerSuspect,
)
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.errors import ProtocolError, Superseded
from dispatcher.platforms.agents.file_asks import FileAsks, KeepLogs, keep_no_logs
from dispatcher.platforms.agents.identity import agent_routing_id, identified
from dispatcher.platforms.agents.message_check import MessageCheck
from dispatcher.platforms.agents.outbox import ACKNOWLEDGE_EVERY, AgentOutbox
from dispatcher.platforms.agents.process import MOVED, AgentProcess, Loss
from dispatcher.platforms.agents.self_report import SelfReport, Statistics
from dispatcher.platforms.agents.translation import answer_order, end_of_too_large
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

#: A head speaks this often, lest it be taken for dead; to one of a crowd, as often as that does.
PING_S = 1.0

#: What an agent that is not needed any more may take to leave by itself (seconds).
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
        config: the agent's configuration; ``config.epoch`` is this head's epoch.
        process: starts, watches and ends the agent's process.
        folder: the experiment's folder on this machine.
        suspect_s: silence after which the agent is suspect: it gets nothing more to run.
        lost_s: silence after which a living agent is given up and killed, with all it runs.
        leads: whether this head still leads. One that does not, since it was stopped and
            another one has taken over, may judge and kill nobody.
        trouble_with_share: gets the token of the share of weights that the agent reports, if
            it reports one; returns a sentence if it is the wrong share, else nothing.
        keep_logs: gets the ends of logs that it hands in.
        clock: monotonic seconds.
    """

    judged = False  # our own agent reports, and its messages are checked one by one

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
        keep_logs: KeepLogs = keep_no_logs,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        routing_id = agent_routing_id(folder, config.worker)
        link.renew(routing_id)
        self._config = identified(config, routing_id)
        self._suspect_s = suspect_s
        self._lost_s = lost_s
        self._ping_s = max(PING_S, config.heartbeat_s)
        self._leads = leads
        self._trouble_with_share = trouble_with_share
        self._silence = Silence(STEP_S, clock)
        self._suspect = False
        self._clock = clock
        self._worker = WorkerId(config.worker)
        self._process = process
        self._watched: int | None = None  # the process whose silence is counted
        self._incarnation = ""  # the id of the agent that has joined
        self._trouble = ""  # why the agent that is there may not join
        self._joined = False
        self._received = 0  # number of the newest message taken from this incarnation
        self._acknowledged = 0
        self._report = SelfReport(self._worker, process, clock)
        self._check = MessageCheck(config.worker, config.trial, clock)
        self._outbox = AgentOutbox(link, routing_id, config.epoch, clock)
        self.files = FileAsks(config.worker, self._outbox.send, clock, keep_logs)
        self._unsendable: list[Event] = []  # ends of attempts whose orders no frame can carry
        self._closing = False
        self._parted = False

    # -- actions -------------------------------------------------------------------------------

    def perform(self, action: WorkerAction) -> None:
        """Carry out an action at the next :meth:`flush`; never blocks."""
        if isinstance(action, StartAttempt):
            self._start(action)
        elif isinstance(action, StopAttempt):
            self._outbox.add(action)
        elif isinstance(action, AnswerOffer):
            self._outbox.add(answer_order(action))
        elif isinstance(action, LaunchWorker):
            self._launch()

    def _start(self, action: StartAttempt) -> None:
        if self._outbox.add(action):
            self._check.given(action.trial, action.attempt)
            return
        self._unsendable.append(end_of_too_large(action))

    def acknowledge(self) -> None:
        """Acknowledge all messages received, which are on disk, at the next :meth:`flush`."""
        self._acknowledged = self._received

    def flush(self) -> None:
        """Send what was buffered as one frame; kept for the next time if it cannot go now.

        Acknowledgements alone wait for the next order, and go without one in place of a ping: with
        many agents a head sends little else.
        """
        if self._outbox.owes(self._acknowledged) >= ACKNOWLEDGE_EVERY or self._outbox.waiting:
            self._send_all()

    def _send_all(self) -> None:
        if self._joined:
            self._outbox.send_all(self._acknowledged)

    # -- messages ------------------------------------------------------------------------------

    def receive(self, payload: bytes) -> list[Event]:
        """Decode a frame of the agent. Raises ``ProtocolError`` for what it may not send."""
        frame = self._check.read(payload)
        if frame is None:  # it is given up at the next check
            return []
        self._silence.heard()
        if frame.epoch > self._config.epoch:
            raise self._later_head(frame.epoch)
        if frame.epoch < self._config.epoch:
            # It still follows the head before; what it sends will be sent again to us.
            self._outbox.welcome()
            return []
        events: list[Event] = []
        if self._suspect:
            self._suspect = False
            events.append(WorkerHeard(self._worker))
        for message in frame.messages:
            if isinstance(message, wire.AttemptMessages):
                self._take(message, events)
            elif isinstance(message, wire.Heartbeat):
                ours = self._joined and message.life == self._incarnation
                events += self._report.heartbeat(message, ours=ours)
                # What was sent before this and is not here was lost with a connection.
                strange = message.life != self._incarnation or message.newest < self._received
                if strange or message.sent > self._received:
                    self._outbox.welcome()
            elif isinstance(message, wire.AgentHello):
                self._join(message, events)
            elif isinstance(message, wire.Offers):
                if self._joined and message.life == self._incarnation:
                    events += self._news(message.offer)
            elif isinstance(message, wire.FileGiven):
                self.files.take(message)
            else:
                raise self._later_head(message.epoch)
        return events

    def _later_head(self, epoch: int) -> ProtocolError | Superseded:
        """The error for an agent that knows a later head. If nobody else does, it is mistaken."""
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
                self._process.give_up()  # it left as we came; its successor has its spool
                self._forget()
                self._launch()
                loss = None
            if loss is None and self._check.unheard and self._process.pid is not None:
                loss = Loss(self._check.unheard)
            if loss is None:
                silent_s = self._since_launch(silent_s)
                loss = self._loss_by_silence(silent_s)
            if loss is None and self._may_be_replaced():
                loss = Loss(_REPLACED, leaves=True)
            if loss is not None:
                events.append(self._lose(loss))
            elif silent_s > self._suspect_s and self._joined and not self._suspect:
                self._suspect = True
                events.append(WorkerSuspect(self._worker, silent_s))
            events += self._report.of_its_place(joined=self._joined)
        outbox = self._outbox
        if self._joined and now - outbox.spoke_at >= self._ping_s:
            if not (outbox.waiting or outbox.owes(self._acknowledged)):
                outbox.send([wire.Ping()])
            self._send_all()
        elif outbox.waiting:  # which could not go before
            self._send_all()
        return events

    def _since_launch(self, silent_s: float) -> float:
        """The silence of this very process, which begins at its launch (seconds)."""
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
        """Whether a head of another version has left it, it has nothing more to run, and all its
        messages are on disk."""
        done = self._joined and self._check.all_ended and self._acknowledged == self._received
        return done and self._process.outdated

    def waiting(self) -> str | None:
        """Why this backend runs nothing at the moment, in a sentence, or None."""
        silence, place = self._silence.seconds, self._process.place
        wait = self._process.waiting()
        if wait is not None:
            return f"{place} waits: {wait.reason or 'nothing is to run there'}"
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
        """The newest figures of the agent."""
        return self._report.statistics(
            joined=self._joined,
            silence_s=self._silence.seconds,
            messages=self._received,
            refused=self._check.refused.counts,
        )

    # -- beginning and end -------------------------------------------------------------------

    def part(self, *, leave_running: bool, deadline_s: float) -> None:
        """Say goodbye, so that several agents can end at the same time; :meth:`close` waits."""
        self._send_all()
        self._parted = True
        if leave_running:
            return
        self._closing = True
        grace_s = min(self._config.trial.stop_grace_s, max(0.0, deadline_s - 1.0))
        if not (self._joined and self._outbox.send([wire.Shutdown(grace_s)])):
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
        self._report.comes_by(hello.way)
        if hello.life == self._incarnation and self._joined:
            # Sent twice; the messages that follow are told apart by their numbers. Those before
            # the first one were acknowledged: it does not have them any more.
            self._received = max(self._received, hello.first - 1)
            events += self._news(hello.offer)
            return
        expected = self._process.expects(hello.pid, hello.ticket)
        if expected is None:
            return  # it will be heard again when we know which process to believe
        if not expected or (self._joined and self._check.is_second(hello)):
            # Given up, and back all the same. What it runs is not believed any more.
            _log.warning("agent %s (pid %d) was given up: it must leave", hello.worker, hello.pid)
            self._outbox.dismiss(hello.life)
            return
        news = not hello.trouble or hello.trouble != self._trouble
        if news and not self._check.introduces_itself(len(hello.holds)):
            return
        if self._joined and self._check.is_next(hello):
            events.append(self._lose(MOVED))  # it joins when that is on disk
            return
        if hello.trouble and not hello.hands_in:
            self._exclude(hello, events)
            return
        wrong = self._trouble_with_share(hello.share)
        if wrong:  # the next one there gets the right one with its configuration
            events.append(self._lose(Loss(wrong)))
            return
        self._incarnation = hello.life
        self._trouble = ""
        self._joined = True
        self._received = self._acknowledged = hello.first - 1
        self._outbox.begin(hello.life, hello.orders, self._received)
        held = set(hello.holds)
        self._check.joined(held, hello.start, hello.restarts)
        self.files.joined(hello.serves)
        slots = min(hello.slots, self._config.slots)  # no machine takes more than it is to have
        if self._process.outdated or hello.trouble:
            _log.info("%s gets nothing new: %s", self._worker, hello.trouble or "another version")
            slots = 0
        events.append(
            WorkerJoined(
                self._worker,
                slots,
                tuple((TrialId(trial), attempt) for trial, attempt in sorted(held)),
                self._report.joined(hello),
            )
        )

    def _news(self, offer: wire.OfferMessage | None) -> list[WorkerOffers]:
        """The event of an offer of resources that differs from the last one, or nothing."""
        if not (self._report.is_news(offer) and self._check.takes_news()):
            return []
        return self._report.offers(offer)

    def _exclude(self, hello: wire.AgentHello, events: list[Event]) -> None:
        """Exclude an agent that is there, and repeats at each heartbeat why it can take nothing."""
        self._incarnation, self._joined = hello.life, False
        self._outbox.begin(hello.life, hello.orders)
        self.files.gone()
        if hello.trouble != self._trouble:
            self._trouble = hello.trouble
            _log.warning("agent %s takes no trials: %s", self._worker, hello.trouble)
            # Without hope it is no worker of this experiment, though it goes on looking.
            hopeless = hello.hopeless
            lost = WorkerLost(self._worker, hello.trouble, hopeless, kept_out=not hopeless)
            events.append(lost)
        self._outbox.send([wire.Ping()])  # or it would think that no head is there

    def _take(self, message: wire.AttemptMessages, events: list[Event]) -> None:
        if not self._joined:
            self._outbox.welcome()
            return
        new = message.messages
        known = self._received + 1 - message.first
        if known < 0:
            self._outbox.welcome()  # some were lost on the way: all again
            return
        if known:
            new = new[known:]
        events += self._check.facts_of(new)
        self._received += len(new)
        self.files.handed_in(message.logs)

    def _lose(self, loss: Loss) -> Event:
        _log.warning("agent %s is lost: %s", self._worker, loss.reason)
        planned, ends_as = loss.planned or self._report.leaving, loss.ends_as
        if loss.leaves:
            self._outbox.add(wire.Shutdown(0.0))  # behind the last acknowledgement
            self._send_all()
        if not loss.returns:
            self._process.give_up(LEAVE_S if loss.leaves else 0.0)
        self._forget()
        return WorkerLost(
            self._worker, loss.reason, loss.hopeless, planned=planned, ends_as=ends_as
        )

    def _forget(self) -> None:
        self._joined = self._suspect = False
        self._incarnation = self._trouble = ""
        self._report.gone()
        self.files.gone()
        self._outbox.forget()
