"""The ROUTER at which trials and warm workers speak to their agent.

A routing id is ``<owner's prefix with its secret>:<process>``: who does not know the secret
of an attempt cannot speak for it, and what unknown ids say is not even decoded.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence

import zmq

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.link import RECEIPT_EVERY

#: Frames taken in one turn of the loop: a chatty trial must not hold up exits and heartbeats.
FRAMES_PER_TURN = 512

#: Processes of one attempt that may speak at the same time (or have left without a bye).
MAX_CONNECTIONS = 4096

#: As plain numbers: arithmetic with pyzmq's enumerations shows in a turn of the loop.
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)

_log = logging.getLogger("bequeath.agent")


class Speaker:
    """Who owns a prefix: an attempt, or a warm worker with the attempt it runs now."""

    __slots__ = ("attempt", "connections", "prefix")

    def __init__(self, prefix: bytes, attempt: Attempt | None) -> None:
        self.prefix = prefix
        self.attempt = attempt
        self.connections: list[Connection] = []


class Connection:
    """One process that speaks, and how far it has been receipted."""

    __slots__ = ("closed", "count", "receipted", "routing_id", "speaker")

    def __init__(self, routing_id: bytes, speaker: Speaker) -> None:
        self.routing_id = routing_id
        self.speaker = speaker
        self.count = 0
        self.receipted = 0
        self.closed = False


class Door:
    """The socket and who may use it. Owned by the agent's loop."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], folder: str, worker: str) -> None:
        path = os.path.join(folder, f"a-{worker}")
        self.address = f"ipc://{path}"
        self.socket = context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.MAXMSGSIZE, wire.MAX_TRIAL_FRAME_BYTES)
        self.socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self.socket.bind(self.address)
        self._speakers: dict[bytes, Speaker] = {}
        self._connections: dict[bytes, Connection] = {}

    def admit(self, prefix: str, attempt: Attempt | None) -> Speaker:
        """Let processes that know this prefix speak."""
        speaker = Speaker(prefix.encode(), attempt)
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
                continue
            if connection is None or connection.closed:
                continue
            try:
                messages = wire.from_trial(payload)
            except wire.WireError as error:
                connection.closed = True
                _log.warning("closed a connection of %s: %s", _name(connection), error)
                self.send(connection, [wire.Refused(str(error))])
                continue
            connection.count += len(messages)
            yield connection, messages

    def send(self, connection: Connection, messages: Sequence[wire.ToTrial]) -> bool:
        """Say something; false if nobody is there any more (or does not listen)."""
        try:
            self.socket.send(connection.routing_id, _MORE)
            self.socket.send(wire.frame(messages), _NOBLOCK)
        except zmq.ZMQError:
            return False
        return True

    def receipt(self, connection: Connection, *, now: bool) -> None:
        """Confirm what has arrived: at once, or when enough of it has."""
        if now or connection.count - connection.receipted >= RECEIPT_EVERY:
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
