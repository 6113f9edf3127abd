"""The ROUTER at which trials and warm workers speak to their agent.

A routing id is ``<owner's prefix with its secret>:<process>``: who does not know the secret
of an attempt cannot speak for it, and what unknown ids say is not even decoded. Nothing that
arrives here is believed: sizes, counts, rates and the texts of metrics are checked, and what is
not taken is counted by reason.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence

import zmq

from trial_runtime import wire
from trial_runtime.agent.allowance import Allowance
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.metric_check import metric_fault
from trial_runtime.agent.timers import Timers
from trial_runtime.link import RECEIPT_EVERY
from trial_runtime.refusals import Refusals

#: Frames taken in one turn of the loop: a chatty trial must not hold up exits and heartbeats.
FRAMES_PER_TURN = 512

#: Processes of one attempt that may speak at the same time (or have left without a bye).
MAX_CONNECTIONS = 4096

#: What a frame may hold beside one metric (bytes).
ROOM_BYTES = 64 << 10

#: Frames that wait in ZeroMQ for one connection: with their size, a bound on memory.
WAITING_FRAMES = 256

#: Bytes that cost a trial as much of its rate as one more message does.
BYTES_PER_TOKEN = 1024

#: As plain numbers: arithmetic with pyzmq's enumerations shows in a turn of the loop.
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)

_log = logging.getLogger("bequeath.agent")


class _Unacceptable(Exception):
    """Raised when a frame may not be said; ``reason`` is the word it is counted under."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Speaker:
    """Who owns a prefix: an attempt, or a warm worker with the attempt it runs now."""

    __slots__ = ("allowance", "attempt", "connections", "prefix")

    def __init__(self, prefix: bytes, attempt: Attempt | None, allowance: Allowance) -> None:
        self.prefix = prefix
        self.attempt = attempt
        self.allowance = allowance
        self.connections: list[Connection] = []


class Connection:
    """One process that speaks, and how far it has been receipted.

    ``claims`` is the attempt it says that it belongs to: a process that one attempt of a warm
    worker has left behind does not speak for the next.
    """

    __slots__ = ("claims", "closed", "count", "owed", "receipted", "routing_id", "speaker")

    def __init__(self, routing_id: bytes, speaker: Speaker) -> None:
        self.routing_id = routing_id
        self.speaker = speaker
        self.claims: tuple[int, int] | None = None
        self.count = 0
        self.receipted = 0
        self.owed = False  # a receipt waits until the speaker has paid its debt
        self.closed = False

    def claim(self, attempt: tuple[int, int] | None) -> bool:
        """Note to which attempt it belongs; false if that is over."""
        self.claims = attempt
        return not self.stale

    @property
    def stale(self) -> bool:
        """Whether the attempt it belongs to is not the one that its speaker has now."""
        if self.claims is None:
            return False
        attempt = self.speaker.attempt
        return attempt is None or attempt.key != self.claims


class Door:
    """The socket and who may use it. Owned by the agent's loop.

    Args:
        context: of the agent.
        folder: private and short; the socket is made in it.
        worker: the agent's name.
        spec: the caps on what trials say.
        timers: of the agent's loop.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        folder: str,
        worker: str,
        spec: TrialSpec,
        timers: Timers,
    ) -> None:
        path = os.path.join(folder, f"a-{worker}")
        self.address = f"ipc://{path}"
        self.socket = context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        # Twice as much arrives and is counted; beyond that ZeroMQ cuts the connection.
        self.max_frame_bytes = min(spec.max_metric_bytes + ROOM_BYTES, wire.MAX_TRIAL_FRAME_BYTES)
        self.socket.setsockopt(zmq.MAXMSGSIZE, 2 * self.max_frame_bytes)
        self.socket.setsockopt(zmq.RCVHWM, WAITING_FRAMES)
        self.socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self.socket.bind(self.address)
        os.chmod(path, 0o600)
        self.refusals = Refusals()
        self.slowed = 0  # receipts that were held back
        self._max_metric_bytes = spec.max_metric_bytes
        self._rate = float(spec.max_message_rate)
        self._timers = timers
        #: Told of connections that are not listened to any more.
        self.on_closed: Callable[[Connection], None] | None = None
        self._speakers: dict[bytes, Speaker] = {}
        self._connections: dict[bytes, Connection] = {}

    def admit(self, prefix: str, attempt: Attempt | None) -> Speaker:
        """Let processes that know this prefix speak."""
        speaker = Speaker(prefix.encode(), attempt, Allowance(self._rate, time.monotonic()))
        self._speakers[speaker.prefix] = speaker
        return speaker

    def dismiss(self, speaker: Speaker) -> None:
        """Do not listen to this speaker any more."""
        self._speakers.pop(speaker.prefix, None)
        for connection in speaker.connections:
            self._connections.pop(connection.routing_id, None)
        speaker.connections.clear()

    def receive(self) -> Iterator[tuple[Connection, list[wire.FromTrial]]]:
        """What has arrived, in order, up to :data:`FRAMES_PER_TURN` frames."""
        receive, noblock, more = self.socket.recv, _NOBLOCK, zmq.RCVMORE
        for _ in range(FRAMES_PER_TURN):
            try:
                routing_id = receive(noblock)
            except zmq.Again:
                return
            payload = receive(noblock)
            connection = self._connections.get(routing_id) or self._connect(routing_id)
            if self.socket.getsockopt(more):
                self._skip_rest()
                self._refuse(connection, "frames", "a message of several frames")
                continue
            if connection is None:
                self._refuse(None, "stranger", "unknown sender")
                continue
            if connection.closed or connection.stale:
                self._refuse(connection, "closed" if connection.closed else "superseded", "")
                continue
            messages = self._understood(connection, payload)
            if messages is None:
                continue
            if isinstance(messages[0], wire.Attach) and not connection.claim(messages[0].attempt):
                self._refuse(connection, "superseded", "")
                continue
            connection.count += len(messages)
            yield connection, messages

    def _understood(self, connection: Connection, payload: bytes) -> list[wire.FromTrial] | None:
        """The messages of a frame; None, and the connection closed, if it may not be said."""
        try:
            return self._checked(connection.speaker.allowance, payload)
        except _Unacceptable as error:
            self._close(connection, error.reason, str(error))
            return None

    def _checked(self, allowance: Allowance, payload: bytes) -> list[wire.FromTrial]:
        size = len(payload)
        if size > self.max_frame_bytes:
            text = f"a frame of {size:,} bytes; {self.max_frame_bytes:,} are allowed"
            raise _Unacceptable("oversize", text)
        allowance.spend(1 + size / BYTES_PER_TOKEN, time.monotonic())
        try:
            messages = wire.from_trial(payload)
        except wire.WireError as error:
            raise _Unacceptable("malformed", str(error)) from error
        allowance.level -= len(messages) - 1
        if allowance.flooded:
            raise _Unacceptable("flood", "more messages than it may send in a time")
        for message in messages:
            if isinstance(message, wire.Metric | wire.Final):
                fault = metric_fault(message.value, self._max_metric_bytes)
                if fault:
                    raise _Unacceptable("metric", fault)
        return messages

    def _close(self, connection: Connection, reason: str, text: str) -> None:
        """Do not listen to this connection any more, and tell it why."""
        connection.closed = True
        self._refuse(connection, reason, text)
        self.send(connection, [wire.Refused(text)])
        if self.on_closed is not None:
            self.on_closed(connection)

    def _refuse(self, connection: Connection | None, reason: str, text: str) -> None:
        if self.refusals.count(reason):
            who = _name(connection) if connection is not None else "somebody"
            _log.warning(
                "refused what %s said (%s, %d so far)%s",
                who,
                reason,
                self.refusals.counts.get(reason, 0),
                f": {text}" if text else "",
            )

    def send(self, connection: Connection, messages: Sequence[wire.ToTrial]) -> bool:
        """Say something; false if nobody is there any more (or does not listen)."""
        try:
            self.socket.send(connection.routing_id, _MORE)
            self.socket.send(wire.frame(messages), _NOBLOCK)
        except zmq.ZMQError:
            return False
        return True

    def receipt(self, connection: Connection, *, now: bool) -> None:
        """Confirm what has arrived: at once, or when enough of it has.

        Later, when the speaker has said more than its rate allows: our library waits for
        receipts, so that this is what slows it down.
        """
        if not now and connection.count - connection.receipted < RECEIPT_EVERY:
            return
        debt_s = connection.speaker.allowance.debt_s()
        if debt_s > 0:
            if not connection.owed:
                connection.owed = True
                self.slowed += 1
                self._timers.at(time.monotonic() + debt_s, lambda: self._pay(connection))
            return
        self._confirm(connection)

    def _pay(self, connection: Connection) -> None:
        connection.owed = False
        if connection.receipted < connection.count:
            self._confirm(connection)

    def _confirm(self, connection: Connection) -> None:
        connection.receipted = connection.count
        self.send(connection, [wire.Receipt(connection.count)])

    def forget(self, connection: Connection) -> None:
        """This process has said goodbye."""
        self._connections.pop(connection.routing_id, None)
        if connection in connection.speaker.connections:
            connection.speaker.connections.remove(connection)

    def close(self) -> None:
        """Stop listening."""
        self.socket.close(linger=0)

    def _connect(self, routing_id: bytes) -> Connection | None:
        # A lookup by hash tells nobody how much of a guess was right.
        speaker = self._speakers.get(routing_id.rpartition(b":")[0])
        if speaker is None or len(speaker.connections) >= MAX_CONNECTIONS:
            return None
        connection = Connection(routing_id, speaker)
        speaker.connections.append(connection)
        self._connections[routing_id] = connection
        return connection

    def _skip_rest(self) -> None:
        while self.socket.getsockopt(zmq.RCVMORE):
            self.socket.recv()


def _name(connection: Connection) -> str:
    return repr(connection.speaker.attempt) if connection.speaker.attempt else "a warm worker"
