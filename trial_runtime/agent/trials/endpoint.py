"""The endpoint at which trials and warm workers connect to their agent.

A connection's first frame is its owner's secret. A process without the secret of an attempt
cannot send for it, and its frames are not even decoded. Nothing that arrives is trusted: sizes,
counts, rates and the texts of metrics are checked, and refused messages are counted by reason.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from typing import Union

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.trials.bounds import Allowance, metric_fault
from trial_runtime.agent.trials.listener import FrameTooLong, Listener, Peer
from trial_runtime.link import RECEIPT_EVERY
from trial_runtime.local_channel import SCHEME
from trial_runtime.refusals import Refusals

#: Processes of one attempt that may be connected at the same time.
MAX_CONNECTIONS = 4096

#: Processes in all; more wait in the kernel's line.
MAX_PEERS = 16_384

#: The most that a frame may hold beside one metric (bytes).
ROOM_BYTES = 64 << 10

#: Bytes that cost a trial as much of its rate as one more message does.
BYTES_PER_TOKEN = 1024

#: The refusal to a process that was left behind by an attempt.
OVER = "this attempt is over"

_log = logging.getLogger("bequeath.agent")


class _Unacceptable(Exception):
    """Raised when a frame is refused; ``reason`` is the key under which it is counted."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Speaker:
    """The owner of a secret: an attempt, or a warm worker with the attempt it runs now."""

    __slots__ = ("allowance", "attempt", "connections", "secret")

    def __init__(self, secret: bytes, attempt: Attempt | None, allowance: Allowance) -> None:
        self.secret = secret
        self.attempt = attempt
        self.allowance = allowance
        self.connections: list[Connection] = []


class Connection:
    """One connected process, and how many of its messages have a receipt.

    ``claims`` is the attempt that it names as its own: a process that one attempt of a warm
    worker has left behind must not send for the next.
    """

    __slots__ = ("claims", "count", "owed", "peer", "receipted", "speaker")

    def __init__(self, peer: Peer, speaker: Speaker) -> None:
        self.peer = peer
        self.speaker = speaker
        self.claims: tuple[int, int] | None = None
        self.count = 0
        self.receipted = 0
        self.owed = False  # a receipt waits until the speaker has paid its debt

    def claim(self, attempt: tuple[int, int] | None) -> bool:
        """Note the attempt it belongs to; returns false if that is over."""
        self.claims = attempt
        return not self.stale

    @property
    def stale(self) -> bool:
        """Whether the attempt it belongs to is not the one that its speaker has now."""
        if self.claims is None:
            return False
        attempt = self.speaker.attempt
        return attempt is None or attempt.key != self.claims


class Closed:
    """In place of messages: the connection was closed for a fault of its process."""


#: What comes of a connection.
Heard = Union[wire.FromTrial, Closed]


class TrialEndpoint:
    """The socket of the agent, and the speakers that may use it. Owned by the agent's loop.

    Args:
        folder: private and short; the socket is made in it.
        worker: the agent's name.
        spec: the caps on the messages of trials.
        timers: of the agent's loop.
    """

    def __init__(self, folder: str, worker: str, spec: TrialSpec, timers: Timers) -> None:
        path = os.path.join(folder, f"a-{worker}")
        self.address = SCHEME + path
        self.max_frame_bytes = min(spec.max_metric_bytes + ROOM_BYTES, wire.MAX_TRIAL_FRAME_BYTES)
        self._listener = Listener(path, limit=self.max_frame_bytes, most=MAX_PEERS)
        self.refusals = Refusals()
        self._max_metric_bytes = spec.max_metric_bytes
        self._any_metric = spec.nni
        self._rate = float(spec.max_message_rate)
        self._timers = timers
        self._speakers: dict[bytes, Speaker] = {}
        self._put_by: list[tuple[Connection, Sequence[Heard]]] = []

    @property
    def has_put_by(self) -> bool:
        """Whether :meth:`receive` has something though nothing is readable."""
        return bool(self._put_by)

    def fileno(self) -> int:
        """Readable when :meth:`receive` has something."""
        return self._listener.fileno()

    def admit(self, secret: str, attempt: Attempt | None) -> Speaker:
        """Accept processes that know this secret."""
        speaker = Speaker(secret.encode(), attempt, Allowance(self._rate, time.monotonic()))
        self._speakers[speaker.secret] = speaker
        return speaker

    def dismiss(self, speaker: Speaker) -> None:
        """Close the connections of this speaker, and accept no more of them."""
        self._speakers.pop(speaker.secret, None)
        for connection in speaker.connections:
            connection.peer.close()
        speaker.connections.clear()

    def receive(self) -> Iterator[tuple[Connection, Sequence[Heard]]]:
        """A bounded part of the messages that have arrived, each connection's in order.

        The last of a connection that is closed for a fault is :class:`Closed`, alone.
        """
        put_by, self._put_by = self._put_by, []
        yield from put_by
        for peer, frame in self._listener.receive():
            yield from self._take(peer, frame)

    def last_messages(self, attempt: Attempt) -> Iterator[tuple[Connection, Sequence[Heard]]]:
        """All unread messages of an attempt whose process is gone."""
        others = []
        for connection, messages in self.receive():  # it may have been waiting to be accepted
            if connection.speaker.attempt is attempt:
                yield connection, messages
            else:
                others.append((connection, messages))  # theirs is a turn of its own
        self._put_by.extend(others)
        for speaker in [one for one in self._speakers.values() if one.attempt is attempt]:
            for connection in list(speaker.connections):
                for peer, frame in self._listener.drain(connection.peer):
                    yield from self._take(peer, frame)

    def tell(self, attempt: Attempt, messages: Sequence[wire.ToTrial]) -> bool:
        """Send messages to all processes of an attempt; false if that reached none of them."""
        reached = [
            self.send(connection, messages)
            for speaker in self._speakers.values()
            if speaker.attempt is attempt
            for connection in list(speaker.connections)
            if not connection.stale
        ]
        return any(reached)

    def _take(
        self, peer: Peer, frame: bytes | FrameTooLong | None
    ) -> Iterator[tuple[Connection, Sequence[Heard]]]:
        connection: Connection | None = peer.owner
        if connection is None:
            if isinstance(frame, bytes):
                self._greet(peer, frame)
            elif frame is not None:
                self._refuse(None, "stranger", "unknown sender")
        elif frame is None:
            self._forget(connection)
        elif isinstance(frame, FrameTooLong):
            yield self._close(connection, "oversize", str(frame))
        elif connection.stale:
            yield self._close(connection, "superseded", OVER)
        else:
            yield self._understood(connection, frame)

    def _greet(self, peer: Peer, secret: bytes) -> None:
        # A lookup by hash tells nobody how much of a guess was right.
        speaker = self._speakers.get(secret)
        if speaker is None or len(speaker.connections) >= MAX_CONNECTIONS:
            self._refuse(None, "stranger", "unknown sender")
            peer.close()
            return
        peer.owner = connection = Connection(peer, speaker)
        speaker.connections.append(connection)

    def _forget(self, connection: Connection) -> None:
        if connection in connection.speaker.connections:
            connection.speaker.connections.remove(connection)

    def _understood(
        self, connection: Connection, payload: bytes
    ) -> tuple[Connection, Sequence[Heard]]:
        """The messages of a frame; the connection is closed if it is refused."""
        try:
            messages = self._checked(connection.speaker.allowance, payload)
        except _Unacceptable as error:
            return self._close(connection, error.reason, str(error))
        if isinstance(messages[0], wire.Attach) and not connection.claim(messages[0].attempt):
            return self._close(connection, "superseded", OVER)
        connection.count += len(messages)
        return connection, messages

    def _checked(self, allowance: Allowance, payload: bytes) -> list[wire.FromTrial]:
        size = len(payload)
        allowance.spend(1 + size / BYTES_PER_TOKEN, time.monotonic())
        try:
            messages = wire.from_trial(payload)
        except wire.WireError as error:
            raise _Unacceptable("malformed", str(error)) from error
        allowance.level -= len(messages) - 1
        if allowance.flooded:
            raise _Unacceptable("flood", "more messages than it may send in a time")
        for message in messages:
            if isinstance(message, (wire.Metric, wire.Final)):
                fault = metric_fault(
                    message.value, self._max_metric_bytes, any_value=self._any_metric
                )
                if fault:
                    raise _Unacceptable("metric", fault)
        return messages

    def _close(
        self, connection: Connection, reason: str, text: str
    ) -> tuple[Connection, Sequence[Heard]]:
        """Close this connection, and send it the reason."""
        self._refuse(connection, reason, text)
        self.send(connection, [wire.Refused(text)])
        connection.peer.close()
        self._forget(connection)
        return connection, [Closed()]

    def _refuse(self, connection: Connection | None, reason: str, text: str) -> None:
        if self.refusals.count(reason):
            who = _name(connection) if connection is not None else "somebody"
            _log.warning(
                "refused a message of %s (%s, %d so far)%s",
                who,
                reason,
                self.refusals.counts.get(reason, 0),
                f": {text}" if text else "",
            )

    def send(self, connection: Connection, messages: Sequence[wire.ToTrial]) -> bool:
        """Send messages; returns false if the process is gone, or does not read."""
        return connection.peer.send(wire.frame(messages))

    def receipt(self, connection: Connection, *, now: bool) -> None:
        """Confirm the messages that have arrived: at once, or when there are enough.

        It is delayed when the speaker has sent more than its rate allows. Our library waits for
        receipts, so the delay slows it down.
        """
        if not now and connection.count - connection.receipted < RECEIPT_EVERY:
            return
        debt_s = connection.speaker.allowance.debt_s()
        if debt_s > 0:
            if not connection.owed:
                connection.owed = True
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

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


def _name(connection: Connection) -> str:
    return repr(connection.speaker.attempt) if connection.speaker.attempt else "a warm worker"
