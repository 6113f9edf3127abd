"""The agent's connection to its head: epochs, heartbeats, words out, acknowledgements in."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable

import zmq

from trial_runtime import wire
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.outbox import Outbox
from trial_runtime.agent.probing import looks_at_root
from trial_runtime.endpoint import Endpoint, connect
from trial_runtime.failpoints import failpoint
from trial_runtime.refusals import Refusals
from trial_runtime.silence import Silence

#: Silence after which words are spooled: longer than a busy head ever is between two pings.
QUIET_S = 3.0

#: What counts as silence between two ticks of the agent at most, in heartbeats: less than the
#: shortest grace, so that none ends by a pause of our own.
_STEP_BEATS = 2

#: What we have for trials is said again after this time (seconds): a connection that breaks
#: takes what is under way, and only words are counted.
OFFER_AGAIN_S = 15.0

#: The trouble that was first: a weights root that is not there.
_ROOT = "root"

_NOBLOCK = int(zmq.NOBLOCK)  # a plain number is cheaper to pass on than the enumeration

_log = logging.getLogger("bequeath.agent")


class HeadLink:
    """A DEALER to the head. Owned by the agent's loop.

    Words leave only between a head's welcome and the next sign that it is gone; each new
    head is told everything it may not know. A head of an older epoch is refused, and counted:
    somebody has taken over from it.

    Args:
        where: the head's address as of now; asked when the head is quiet.
        offer: what this host has for trials beside slots, hints that change often as they were
            told last, unless it is asked for the newest.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        config: AgentConfig,
        outbox: Outbox,
        holds: Callable[[], list[tuple[int, int]]],
        where: Callable[[], Endpoint] | None = None,
        offer: Callable[[bool], wire.OfferTold | None] = lambda newest: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._config = config
        self._outbox = outbox
        self._holds = holds
        self.incarnation = secrets.token_hex(8)
        self.epoch = config.epoch
        self.refused = Refusals()
        self._clock = clock
        self._silence = Silence(_STEP_BEATS * config.heartbeat_s, clock)
        self._greeted = False
        # What keeps us from joining, by where it was looked for; None: not known yet.
        self._troubles: dict[str, str | None] = {}
        self._share = ""  # the token of our weights root, if the head did not tell us
        if looks_at_root(config):
            self._troubles[_ROOT] = None
        if config.resources.count_gpus:
            self._troubles["devices"] = None
        self._hopeless: set[str] = set()
        self._hands_in = False  # may not join, and says nevertheless what it has to say
        self._offer = offer
        self._offered: wire.OfferTold | None = None  # what this head was told
        self._offered_at = 0.0
        self._orders = 0  # number of the newest order heard from this head
        self._where = where or (lambda: config.head)
        self._endpoint = config.head
        self._socket_file = _socket_file(config.head)
        self.socket = connect(context, config.head, immediate=True)

    @property
    def greeted(self) -> bool:
        """Whether this head has been told who we are."""
        return self._greeted

    @property
    def quiet(self) -> bool:
        """Whether the head has been silent for a while."""
        return self._silence.seconds > QUIET_S

    @property
    def silence_s(self) -> float:
        """Seconds since the head's last word, as far as we listened."""
        return self._silence.seconds

    def look(self) -> None:
        """To be called at each heartbeat, after :meth:`receive`."""
        self._silence.look()

    def reconnect(self) -> bool:
        """Turn to a head that has come to another address, or to another socket at the same
        path; true if there is one, and :attr:`socket` another.

        A head that was killed leaves a broken connection, which ZeroMQ mends. One that was
        stopped, and taken over from, holds its end open for as long as it likes.
        """
        endpoint = self._where()
        there = _socket_file(endpoint)
        if (endpoint, there) == (self._endpoint, self._socket_file):
            return False
        if there is None and endpoint.address.startswith(_IPC):
            return False  # nobody listens there now
        _log.info("the head is elsewhere now: connecting anew")
        self._endpoint, self._socket_file = endpoint, there
        self.socket.close(linger=0)
        self.socket = connect(self._context, endpoint, immediate=True)
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
                if self._hands_in:  # what we do not start is given again when we have joined anew
                    orders = [each for each in orders if not isinstance(each, wire.Start)]
                if missed:
                    # What is heard behind a gap counts as lost, too: the hello says what we
                    # hold now, and the head gives its orders by that. All but the last one.
                    orders = [each for each in orders if isinstance(each, wire.Shutdown)]
                    self._begin_anew()
                elif welcomed:
                    self.greet()
                return orders
            try:
                frame = wire.from_head(payload)
            except wire.WireError as error:
                _log.error("dropped a frame of the head: %s", error)
                continue
            if frame.epoch < self.epoch:
                if self.refused.count("words of an older head", len(frame.messages)):
                    _log.warning(
                        "refused a head of epoch %d: we follow %d", frame.epoch, self.epoch
                    )
                self._send_to(frame.epoch, [wire.Fenced(self.epoch)])
                continue
            self._silence.heard()
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
            for message in frame.messages:
                if type(message) is wire.Welcome:
                    welcomed = True
                elif type(message) is wire.Ack:
                    self._outbox.acknowledge(message.number)
                elif type(message) not in wire.UNCOUNTED:
                    orders.append(message)
            heard = self._orders + len(orders) - known
            missed = missed or frame.orders > heard
            self._orders = frame.orders or heard

    def _begin_anew(self) -> None:
        """Orders were lost on the way. To the head we are a new agent that holds what we hold:
        it asks again for what it misses, the one way of recovery that there is."""
        _log.warning("orders of the head were lost on the way; joining anew")
        self.incarnation = secrets.token_hex(8)
        self.greet()

    def greet(self) -> None:
        """Introduce ourselves; then all words are sent (again). With trouble on this host we
        say so instead, at each heartbeat, and are not greeted back; unless an agent before us
        left words: what its trials have done does not wait for this host to be mended."""
        if None in self._troubles.values():
            return
        trouble = "; ".join(text for text in self._troubles.values() if text)
        config, outbox = self._config, self._outbox
        holds = sorted(set(self._holds()) | outbox.attempts())
        hands_in = bool(trouble and holds)
        if self._hands_in and not hands_in:
            self.incarnation = secrets.token_hex(
                8
            )  # else it would be the hello that the head knows
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
        )
        self._greeted = self._send([hello]) and (hands_in or not trouble)
        if self._greeted:
            self._offered, self._offered_at = hello.offer, self._clock()
            outbox.rewind()

    def found_share(self, token: str) -> None:
        """What stands below our weights root, which the head cannot see. From any thread, before
        :meth:`tell_trouble` says that there is none."""
        self._share = token

    def tell_trouble(self, trouble: str, place: str = _ROOT, *, hopeless: bool = False) -> None:
        """What has to be mended on this host before we may join; nothing, if it is empty.

        Args:
            trouble: in a sentence.
            place: where it was looked for; another place's trouble is another one.
            hopeless: it does not pass by itself.
        """
        self._troubles[place] = trouble
        (self._hopeless.add if trouble and hopeless else self._hopeless.discard)(place)
        mended = self._hands_in and not any(self._troubles.values())
        if mended or not self._greeted:
            self.greet()

    def tell_offer(self) -> None:
        """What we have for trials may be another than this head knows of."""
        now = self._clock()
        again = now - self._offered_at >= OFFER_AGAIN_S
        offer = self._offer(again) if self._greeted and not self._hands_in else None
        if offer is None or (offer == self._offered and not again):
            return
        if self._send([wire.Offers(self.incarnation, offer)]):
            self._offered, self._offered_at = offer, now

    def heartbeat(
        self, running: int, refused: dict[str, int], samples: wire.Samples | None = None
    ) -> None:
        """Say that we live, what was not taken from trials and older heads, and what trials
        take."""
        self.tell_offer()  # where one could not be sent before
        if self._hands_in and self._outbox.first > self._outbox.newest and not self._holds():
            self.greet()  # all that was to be said is on disk
        elif self._greeted:
            refused = refused | self.refused.counts
            newest, sent = self._outbox.newest, self._outbox.sent
            self._send([wire.Heartbeat(self.incarnation, running, newest, refused, sent, samples)])
        else:
            self.greet()

    def flush(self) -> bool:
        """Send words that wait; false if the head does not take them now."""
        if not self._greeted:
            return False
        while (frame := self._outbox.next_frame()) is not None:
            if not self._send([frame]):
                return False
            failpoint("agent.words.sent")
            self._outbox.mark_sent(frame)
        return True

    def close(self) -> None:
        """Leave, giving the last frames a moment to go."""
        self.socket.close(linger=500)

    def _send(self, messages: list[wire.FromAgent]) -> bool:
        return self._send_to(self.epoch, messages)

    def _send_to(self, epoch: int, messages: list[wire.FromAgent]) -> bool:
        try:
            self.socket.send(wire.frame(wire.AgentFrame(epoch, messages)), _NOBLOCK)
        except zmq.Again:
            return False
        return True


_IPC = "ipc://"


def _socket_file(endpoint: Endpoint) -> tuple[int, int, int] | None:
    """Which file the head listens on; None on TCP, or when there is none. The time is in it
    since the number of a file that is gone may be given to the next."""
    if not endpoint.address.startswith(_IPC):
        return None
    try:
        status = os.stat(endpoint.address.removeprefix(_IPC))
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns
