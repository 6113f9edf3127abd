"""Messages for the head, kept until it has acknowledged them.

Nothing is dropped: when the outbox is full the agent stops listening to its trials, whose
reports then wait. While no head answers, messages are copied to the spool, so that an agent
started later on the same folder can still send them.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Optional
from zlib import crc32

import msgspec

from trial_runtime import wire
from trial_runtime.fact_wire import decode_fact, encode_fact
from trial_runtime.facts import AttemptEnded, AttemptFact, EndReason
from trial_runtime.failpoints import failpoint
from trial_runtime.opening import create_private, open_regular

#: Encoded messages kept at most (bytes): a metric takes about 30, so this is two million.
MAX_BYTES = 64 << 20
_OVERHEAD_BYTES = 80  # CPython's overhead beside the content

#: Messages and bytes in one frame to the head: large enough to amortise, small enough not to
#: hold up its loop.
MESSAGES_PER_FRAME = 2000
BYTES_PER_FRAME = 1 << 20

#: Ends of logs kept at most (bytes). Of more the oldest are given up: no trial waits for room for
#: them, and no result does.
MAX_LOG_BYTES = 8 << 20

#: The beginning of a spool. One without it is of a version that had no checksums.
_MAGIC = b"BQS\x02"
_RECORD = struct.Struct("<II")  # length, CRC-32
_OLD_RECORD = struct.Struct("<I")


class Outbox:
    """Numbered messages, from ``first`` on. Not thread-safe: the agent's loop owns it."""

    def __init__(self, spool_path: str) -> None:
        self._spool_path = spool_path
        self._messages: deque[msgspec.Raw] = deque()
        self._sizes = 0
        self._spooled = 0  # number of the newest message that lies in the spool
        self._spool_bytes = 0  # of the spool, up to that message: the rest was torn
        self.first = 1
        self.newest = 0
        self.sent = 0  # number of the newest message sent to this head
        self.urgent = False
        self._logs: dict[int, wire.LogEnds] = {}  # by the number of the message that they go with
        self._log_bytes = 0
        self._load()

    def add(self, fact: AttemptFact, *, urgent: bool, logs: Optional[wire.LogEnds] = None) -> None:
        """Keep a fact as a message.

        Args:
            fact: of an attempt.
            urgent: whether it leaves with the current turn of the loop.
            logs: go with it in the same frame, as often as it is sent; they are in no spool.
        """
        raw = encode_fact(fact)
        self._messages.append(raw)
        self._sizes += len(bytes(raw)) + _OVERHEAD_BYTES
        self.newest += 1
        self.urgent = self.urgent or urgent
        if logs is not None:
            self._logs[self.newest] = logs
            self._log_bytes += logs.nbytes
            while self._log_bytes > MAX_LOG_BYTES:
                self._drop_logs(next(iter(self._logs)))

    @property
    def unsent(self) -> int:
        """The number of messages that wait to be sent."""
        return self.newest - self.sent

    @property
    def full(self) -> bool:
        """Whether trials must wait."""
        return self._sizes >= MAX_BYTES

    def next_frame(self) -> wire.AttemptMessages | None:
        """The next messages to send; call :meth:`mark_sent` when they went."""
        if self.sent >= self.newest:
            return None
        start = self.sent + 1 - self.first
        messages: list[msgspec.Raw] = []
        logs: list[wire.LogEnds] = []
        size = 0
        for raw in islice(self._messages, start, start + MESSAGES_PER_FRAME):
            messages.append(raw)
            size += len(bytes(raw))
            ends = self._logs.get(self.sent + len(messages))
            if ends is not None:
                logs.append(ends)
                size += ends.nbytes
            if size >= BYTES_PER_FRAME:
                break
        return wire.AttemptMessages(self.sent + 1, messages, logs)

    def mark_sent(self, frame: wire.AttemptMessages) -> None:
        """Note that these messages went to the head."""
        self.sent = frame.first + len(frame.messages) - 1
        if self.sent >= self.newest:
            self.urgent = False

    def rewind(self) -> None:
        """Send all messages again, to a head that knows nothing."""
        self.sent = self.first - 1
        self.urgent = bool(self._messages)

    def acknowledge(self, number: int) -> None:
        """Drop all messages up to ``number``, which the head has on disk."""
        while self._messages and self.first <= number:
            self._sizes -= len(bytes(self._messages.popleft())) + _OVERHEAD_BYTES
            self._drop_logs(self.first)
            self.first += 1
        self.sent = max(self.sent, self.first - 1)
        if self._spooled and number >= self._spooled:
            failpoint("agent.spool.obsolete")
            self._drop_spool()

    def attempts(self) -> set[tuple[int, int]]:
        """The attempts that the messages are about."""
        messages = (decode_fact(raw) for raw in self._messages)
        return {(each.trial, each.attempt) for each in messages}

    def end_orphans(self) -> None:
        """Report the end of the attempts of an agent before us, which ended with it.

        Called once, at an agent's start. An agent that has messages of an attempt answers for it:
        a head would take the attempt for running, and wait for its end for ever.
        """
        messages = [decode_fact(raw) for raw in self._messages]
        over = {(each.trial, each.attempt) for each in messages if isinstance(each, AttemptEnded)}
        for trial, attempt in sorted({(each.trial, each.attempt) for each in messages} - over):
            text = "its agent ended while no head was there"
            self.add(AttemptEnded(trial, attempt, EndReason.LOST, text=text), urgent=True)

    def spool(self) -> None:
        """Copy the messages that are not acknowledged to disk; cheap when nothing is new."""
        if self._spooled >= self.newest:
            return
        if self._spooled < self.first:
            self._spool_bytes = 0
        # Whole: under another name first, since the old spool may be of an agent before us.
        whole = self._spool_bytes == 0
        path = f"{self._spool_path}.new" if whole else self._spool_path
        start = 0 if whole else max(self._spooled + 1 - self.first, 0)
        pieces = [_MAGIC] if whole else []
        for encoded in islice(self._messages, start, None):
            raw = bytes(encoded)
            pieces += (_RECORD.pack(len(raw), crc32(raw)), raw)
        flags = os.O_WRONLY | os.O_CREAT
        descriptor = create_private(path) if whole else open_regular(path, flags, 0o600)
        with open(descriptor, "wb") as file:
            # The remains of a write that failed would hide all that follows.
            file.truncate(self._spool_bytes)
            file.seek(self._spool_bytes)
            file.writelines(pieces)
            file.flush()
            failpoint("agent.spool.written")
            os.fsync(descriptor)
            size = file.tell()
        if whole:
            os.replace(path, self._spool_path)
        failpoint("agent.spool.synced")
        self._spooled, self._spool_bytes = self.newest, size

    def _load(self) -> None:
        try:
            with open(self._spool_path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return
        end = 0
        for raw, position in _records(content):
            end = position
            self._messages.append(msgspec.Raw(raw))
            self._sizes += len(raw) + _OVERHEAD_BYTES
            self.newest += 1
        self._spooled = self.newest
        if content.startswith(_MAGIC):
            self._spool_bytes = end
        self.urgent = self.newest > 0

    def _drop_logs(self, number: int) -> None:
        ends = self._logs.pop(number, None)
        self._log_bytes -= 0 if ends is None else ends.nbytes

    def _drop_spool(self) -> None:
        self._spooled = self._spool_bytes = 0
        try:
            os.unlink(self._spool_path)
        except FileNotFoundError:
            pass


def _records(content: bytes) -> Iterator[tuple[bytes, int]]:
    """The messages of a spool, each with the offset of its end.

    They end where the writer died or the disk has changed the file.
    """
    checked = content.startswith(_MAGIC)
    position = len(_MAGIC) if checked else 0
    head = _RECORD if checked else _OLD_RECORD
    while position + head.size <= len(content):
        length, *crc = head.unpack_from(content, position)
        position += head.size
        raw = content[position : position + length]
        position += length
        if len(raw) < length or (checked and crc32(raw) != crc[0]):
            return
        try:
            decode_fact(raw)
        except wire.WireError:
            return
        yield raw, position
