"""The door at which trials and warm workers speak to their agent.

A connection's first frame is its owner's secret: who does not know the secret of an attempt
cannot speak for it, and what others say is not even decoded.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.listener import FrameTooLong, Listener, Peer
from trial_runtime.link import RECEIPT_EVERY
from trial_runtime.local_channel import SCHEME

#: Processes of one attempt that may speak at the same time.
MAX_CONNECTIONS = 4096

_log = logging.getLogger("bequeath.agent")


class Speaker:
    """Who owns a secret: an attempt, or a warm worker with the attempt it runs now."""

    __slots__ = ("attempt", "connections", "secret")

    def __init__(self, secret: bytes, attempt: Attempt | None) -> None:
        self.secret = secret
        self.attempt = attempt
        self.connections: list[Connection] = []


class Connection:
    """One process that speaks, and how far it has been receipted."""

    __slots__ = ("count", "peer", "receipted", "speaker")

    def __init__(self, peer: Peer, speaker: Speaker) -> None:
        self.peer = peer
        self.speaker = speaker
        self.count = 0
        self.receipted = 0


class Door:
    """Who may speak, and what they say. Owned by the agent's loop."""

    def __init__(self, folder: str, worker: str) -> None:
        path = os.path.join(folder, f"a-{worker}")
        self.address = SCHEME + path
        self._listener = Listener(path, limit=wire.MAX_TRIAL_FRAME_BYTES, most=MAX_CONNECTIONS)
        self._speakers: dict[bytes, Speaker] = {}

    def fileno(self) -> int:
        """Readable when :meth:`receive` has something."""
        return self._listener.fileno()

    def admit(self, secret: str, attempt: Attempt | None) -> Speaker:
        """Let processes that know this secret speak."""
        speaker = Speaker(secret.encode(), attempt)
        self._speakers[speaker.secret] = speaker
        return speaker

    def dismiss(self, speaker: Speaker) -> None:
        """Do not listen to this speaker any more."""
        self._speakers.pop(speaker.secret, None)
        for connection in speaker.connections:
            connection.peer.close()
        speaker.connections.clear()

    def receive(self) -> Iterator[tuple[Connection, list[wire.FromTrial]]]:
        """What has arrived, each connection's words in order, a bounded part of it."""
        for peer, frame in self._listener.receive():
            yield from self._take(peer, frame)

    def last_words(self, attempt: Attempt) -> Iterator[tuple[Connection, list[wire.FromTrial]]]:
        """All that an attempt has left whose process is gone."""
        yield from self.receive()  # it may have been waiting to be let in
        for speaker in [one for one in self._speakers.values() if one.attempt is attempt]:
            for connection in list(speaker.connections):
                for peer, frame in self._listener.drain(connection.peer):
                    yield from self._take(peer, frame)

    def send(self, connection: Connection, messages: Sequence[wire.ToTrial]) -> bool:
        """Say something; false if nobody is there any more (or does not listen)."""
        return connection.peer.send(wire.frame(messages))

    def receipt(self, connection: Connection, *, now: bool) -> None:
        """Confirm what has arrived: at once, or when enough of it has."""
        if now or connection.count - connection.receipted >= RECEIPT_EVERY:
            connection.receipted = connection.count
            self.send(connection, [wire.Receipt(connection.count)])

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _take(
        self, peer: Peer, frame: bytes | FrameTooLong | None
    ) -> Iterator[tuple[Connection, list[wire.FromTrial]]]:
        connection: Connection | None = peer.owner
        if connection is None:
            if isinstance(frame, bytes):
                self._greet(peer, frame)
            return
        if frame is None:
            if connection in connection.speaker.connections:
                connection.speaker.connections.remove(connection)
            return
        try:
            if isinstance(frame, FrameTooLong):
                raise wire.WireError(str(frame))
            messages = wire.from_trial(frame)
        except wire.WireError as error:
            _log.warning("closed a connection of %s: %s", _name(connection), error)
            self.send(connection, [wire.Refused(str(error))])
            self._hang_up(connection)
            return
        connection.count += len(messages)
        yield connection, messages

    def _greet(self, peer: Peer, secret: bytes) -> None:
        speaker = self._speakers.get(secret)
        if speaker is None:
            peer.close()
            return
        peer.owner = connection = Connection(peer, speaker)
        speaker.connections.append(connection)

    def _hang_up(self, connection: Connection) -> None:
        connection.peer.close()
        if connection in connection.speaker.connections:
            connection.speaker.connections.remove(connection)


def _name(connection: Connection) -> str:
    return repr(connection.speaker.attempt) if connection.speaker.attempt else "a warm worker"
