"""The agent's connection to its head: epochs, heartbeats, messages out, acknowledgements in."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable

import zmq

from trial_runtime import facts, wire
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.link.better_ways import BetterWays, TriedSocket
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.agent.link.probing import looks_at_root
from trial_runtime.agent.link.ways import Ways
from trial_runtime.endpoint import Endpoint
from trial_runtime.failpoints import failpoint
from trial_runtime.folder_line.socket import connect_to_head, stands
from trial_runtime.refusals import Refusals
from trial_runtime.silence import Silence

#: Silence after which messages are spooled, in seconds and in heartbeats, the longer of the two:
#: longer than a busy head ever is between two pings.
QUIET_S = 3.0
QUIET_BEATS = 3

#: The most that counts as silence between two ticks of the agent, in heartbeats: less than the
#: shortest grace, so that none ends by a pause of our own.
_STEP_BEATS = 2

#: The offer of resources is repeated after this time (seconds): a connection that breaks loses
#: what is under way, and only numbered messages are counted.
OFFER_AGAIN_S = 15.0

#: The trouble that was first: a weights root that is not there.
_ROOT = "root"

#: The place of troubles with the other nodes of this agent's allocation.
NODES = "nodes"

_NOBLOCK = int(zmq.NOBLOCK)  # a plain number is cheaper to pass on than the enumeration

_log = logging.getLogger("bequeath.agent")


class HeadLink:
    """A DEALER to the head. Owned by the agent's loop.

    Numbered messages leave only between a head's welcome and the next sign that it is gone; each
    new head gets everything that it may not know. A head of an older epoch is refused, and
    counted: another one has taken over from it.

    Args:
        context: ZeroMQ's context; the caller owns it.
        config: of the agent.
        outbox: the messages to send.
        holds: returns the numbers (trial, attempt) of the attempts that have not ended.
        where: returns the ways to the head as of now; called when the head is quiet.
        offer: returns the host's resources beside slots; called with false, hints that change
            often are those of the last offer.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        config: AgentConfig,
        outbox: Outbox,
        holds: Callable[[], list[tuple[int, int]]],
        where: Callable[[], tuple[Endpoint, ...]] | None = None,
        offer: Callable[[bool], wire.OfferMessage | None] = lambda newest: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._config = config
        self._outbox = outbox
        self._had_no_room = False
        self._holds = holds
        self.incarnation = secrets.token_hex(8)
        self._start = secrets.token_hex(8)  # unlike the incarnation, the same for this process
        self._restarts = config.restarts()
        self.epoch = config.epoch
        self.refused = Refusals()
        self._clock = clock
        self._quiet_s = max(QUIET_S, QUIET_BEATS * config.heartbeat_s)
        self._silence = Silence(_STEP_BEATS * config.heartbeat_s, clock)
        self._greeted = False
        # Reasons not to join, by the place that was checked; None: not known yet.
        self._troubles: dict[str, str | None] = {}
        self._share = ""  # the token of our weights root, if the head has not given it
        if looks_at_root(config):
            self._troubles[_ROOT] = None
        if config.resources.count_gpus:
            self._troubles["devices"] = None
        if config.nodes > 1:
            self._troubles[NODES] = None
        self._hopeless: set[str] = set()
        self._hands_in = False  # may not join, and sends its messages nevertheless
        self._offer = offer
        self._offered: wire.OfferMessage | None = None  # the last offer to this head
        self._offered_at = 0.0
        self._orders = 0  # number of the newest order heard from this head
        self._questions: list[wire.FileAsked] = []
        known = (config.head, *config.ways)
        self._where = where or (lambda: known)
        self._ways = Ways(known, clock)
        self._better = BetterWays(lambda endpoint: TriedSocket(context, endpoint), clock)
        self._endpoint = config.head
        self._socket_file = _socket_file(config.head)
        self.socket = connect_to_head(context, config.head)

    @property
    def greeted(self) -> bool:
        """Whether this head has our hello."""
        return self._greeted

    @property
    def takes_nothing(self) -> bool:
        """Whether the last message could not be sent: nobody is at the other end, or is slow."""
        return self._had_no_room

    @property
    def quiet(self) -> bool:
        """Whether the head has been silent for a while."""
        return self._silence.seconds > self._quiet_s

    @property
    def silence_s(self) -> float:
        """Seconds since the head's last message, as far as we listened."""
        return self._silence.seconds

    def look(self) -> None:
        """Measure the head's silence; called at each heartbeat, after :meth:`receive`."""
        self._silence.look()

    def reconnect(self) -> bool:
        """Connect to a head that is at another address, or at another socket of the same path, or
        by another way.

        Returns true if there is one; :attr:`socket` is a new one then. A way whose socket cannot
        be made is passed over, and the last one that could is kept if none can.

        A head that was killed leaves a broken connection, which ZeroMQ mends. One that was
        stopped, and taken over from, holds its end open for as long as it likes.
        """
        known = self._where()
        endpoint = self._ways.choose(known, stands=stands(self.socket), silent_s=self.silence_s)
        for _ in known:
            if self._is_taken(endpoint):
                return False
            if self._go_over(endpoint):
                return True
            endpoint = self._ways.pass_over()
        return False

    def go_back(self) -> bool:
        """Connect by a better way than the one by which the head answers, if one leads to it again.

        Returns true if one does; :attr:`socket` is a new one then. Called at each heartbeat while
        the head is not quiet.
        """
        found = self._better.look(lambda: self._ways.better(self._where()))
        if found is None or self._is_taken(found):
            return False
        if self._go_over(found):
            self._ways.take(found)
            return True
        return False

    def _is_taken(self, endpoint: Endpoint) -> bool:
        """Whether the connection is one to this endpoint, or nobody listens there now."""
        there = _socket_file(endpoint)
        if there is None and endpoint.address.startswith(_IPC):
            return True
        return (endpoint, there) == (self._endpoint, self._socket_file)

    def _go_over(self, endpoint: Endpoint) -> bool:
        """Connect to another endpoint; false, with the connection as it was, if there is no room
        for a socket, its file or its thread."""
        _log.info("connecting anew: %s", endpoint.address)
        there = _socket_file(endpoint)
        try:
            made = connect_to_head(self._context, endpoint)
        except (OSError, zmq.ZMQError, RuntimeError) as error:
            _log.warning("cannot connect to %s: %s", endpoint.address, error)
            return False
        self.socket.close(linger=0)
        self.socket, self._endpoint, self._socket_file = made, endpoint, there
        self._better.stop()
        self._greeted = False
        return True

    def receive(self) -> list[wire.FromHead]:
        """Orders of the head that leads; all else is dealt with here."""
        orders: list[wire.FromHead] = []
        welcomed = missed = False
        while True:
            try:
                payload = self.socket.recv(_NOBLOCK)
            except zmq.Again:
                if self._hands_in:  # the head repeats a start when we have joined anew
                    orders = [each for each in orders if not isinstance(each, facts.StartAttempt)]
                if missed:
                    # Orders behind a gap count as lost, too: the hello names the attempts we
                    # hold now, and the head gives its orders by that. All but a shutdown.
                    orders = [each for each in orders if isinstance(each, wire.Shutdown)]
                    self._begin_anew()
                elif welcomed:
                    self.greet()
                return orders
            try:
                frame = wire.from_head(payload)
                messages = wire.decode_orders(frame, self._config.worker)
            except wire.WireError as error:
                _log.error("dropped a frame of the head: %s", error)
                continue
            if frame.epoch < self.epoch:
                if self.refused.count("messages of an older head", len(frame.messages)):
                    _log.warning(
                        "refused a head of epoch %d: we follow %d", frame.epoch, self.epoch
                    )
                self._send_to(frame.epoch, [wire.Fenced(self.epoch)])
                continue
            self._silence.heard()
            self._ways.heard()
            if frame.epoch > self.epoch:
                _log.info("following the head of epoch %d", frame.epoch)
                self.epoch = frame.epoch
                self._greeted = False
                self._orders = 0
                orders.clear()  # of a head that does not lead any more
            if frame.life not in ("", self.incarnation):
                _log.info("dropped a frame for the agent before this one")
                continue
            known = len(orders)
            for message in messages:
                if type(message) is wire.Welcome:
                    welcomed = True
                elif type(message) is wire.Ack:
                    self._outbox.acknowledge(message.number)
                elif type(message) is wire.FileAsked:
                    self._questions.append(message)
                elif type(message) not in wire.UNCOUNTED:
                    orders.append(message)
            heard = self._orders + len(orders) - known
            missed = missed or frame.orders > heard
            self._orders = frame.orders or heard

    def take_questions(self) -> list[wire.FileAsked]:
        """Return what the head asks for, beside orders."""
        taken, self._questions = self._questions, []
        return taken

    def answer(self, given: wire.FileGiven, epoch: int) -> bool:
        """Send what the head of an epoch has asked for; false if it does not take it now.

        Args:
            given: the answer.
            epoch: of the head that has asked; a later one gets no answer.
        """
        return epoch != self.epoch or self._send([given])

    def _begin_anew(self) -> None:
        """Join as a new incarnation after orders were lost on the way.

        The head sees a new agent that holds the same attempts, and repeats the orders that it
        misses: there is no other way of recovery.
        """
        _log.warning("orders of the head were lost on the way; joining anew")
        self.incarnation = secrets.token_hex(8)
        self.greet()

    def greet(self) -> None:
        """Introduce ourselves; then all messages are sent (again).

        With trouble on this host the hello reports that, at each heartbeat, and we do not join;
        unless an agent before us left messages: the results of its trials do not wait for this
        host to be mended.
        """
        if None in self._troubles.values():
            return
        trouble = "; ".join(text for text in self._troubles.values() if text)
        config, outbox = self._config, self._outbox
        holds = sorted(set(self._holds()) | outbox.attempts())
        hands_in = bool(trouble and holds)
        if self._hands_in and not hands_in:
            # With the old one it would be the hello that the head knows.
            self.incarnation = secrets.token_hex(8)
        self._hands_in = hands_in
        hello = wire.AgentHello(
            self.incarnation,
            config.worker,
            config.slots,
            os.getpid(),
            holds,
            outbox.first,
            self._orders,
            trouble,
            None if hands_in else self._offer(True),  # not what is to be mended first
            bool(self._hopeless),
            self._share,
            hands_in,
            config.ticket,
            self._start,
            [wire.FILES],
            self._endpoint.way,
            self._restarts,
        )
        self._greeted = self._send([hello]) and (hands_in or not trouble)
        if self._greeted:
            self._offered, self._offered_at = hello.offer, self._clock()
            outbox.rewind()

    def found_share(self, token: str) -> None:
        """Note the token below our weights root, which the head cannot see.

        Called from any thread, before :meth:`tell_trouble` reports that there is none.
        """
        self._share = token

    def tell_trouble(self, trouble: str, place: str = _ROOT, *, hopeless: bool = False) -> None:
        """Report a fault of this host that keeps us from joining, or that it has none.

        Args:
            trouble: in a sentence; empty: there is none.
            place: the part of the host that was checked; each has a trouble of its own.
            hopeless: it does not pass by itself.
        """
        self._troubles[place] = trouble
        (self._hopeless.add if trouble and hopeless else self._hopeless.discard)(place)
        mended = self._hands_in and not any(self._troubles.values())
        if mended or not self._greeted:
            self.greet()

    def tell_offer(self) -> None:
        """Send the offer of resources, if it is another than this head knows."""
        now = self._clock()
        again = now - self._offered_at >= OFFER_AGAIN_S
        offer = self._offer(again) if self._greeted and not self._hands_in else None
        if offer is None or (offer == self._offered and not again):
            return
        if self._send([wire.Offers(self.incarnation, offer)]):
            self._offered, self._offered_at = offer, now

    def heartbeat(
        self,
        running: int,
        refused: dict[str, int],
        samples: wire.Samples | None = None,
        *,
        leaving: bool = False,
    ) -> None:
        """Send a heartbeat, or a hello to a head that does not have ours.

        Args:
            running: how many attempts have not ended.
            refused: the refused messages of trials, counted by reason.
            samples: the usage of trials, if it was measured since.
            leaving: whether the place of this agent is taken back.
        """
        self.tell_offer()  # where one could not be sent before
        if self._hands_in and self._outbox.first > self._outbox.newest and not self._holds():
            self.greet()  # all messages are on the head's disk
        elif self._greeted:
            refused = refused | self.refused.counts
            newest, sent = self._outbox.newest, self._outbox.sent
            life = self.incarnation
            self._send([wire.Heartbeat(life, running, newest, refused, sent, samples, leaving)])
        else:
            self.greet()

    def flush(self) -> bool:
        """Send the messages that wait; false if the head does not take them now."""
        if not self._greeted:
            return False
        while (frame := self._outbox.next_frame()) is not None:
            if not self._send([frame]):
                return False
            failpoint("agent.words.sent")
            self._outbox.mark_sent(frame)
        return True

    def close(self) -> None:
        """Close the connection, leaving the last frames a moment to go."""
        self._better.stop()
        self.socket.close(linger=500)

    def _send(self, messages: list[wire.FromAgent]) -> bool:
        return self._send_to(self.epoch, messages)

    def _send_to(self, epoch: int, messages: list[wire.FromAgent]) -> bool:
        try:
            self.socket.send(wire.frame(wire.AgentFrame(epoch, messages)), _NOBLOCK)
        except zmq.Again:
            self._had_no_room = True
        else:
            self._had_no_room = False
        return not self._had_no_room


_IPC = "ipc://"


def _socket_file(endpoint: Endpoint) -> tuple[int, int, int] | None:
    """The identity of the socket file that the head listens on; None on TCP, or without one.

    The time is part of it, since a new file may get the number of one that is gone.
    """
    if not endpoint.address.startswith(_IPC):
        return None
    try:
        status = os.stat(endpoint.address.removeprefix(_IPC))
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns
