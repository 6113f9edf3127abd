"""The bells and batches of a line as bytes, sealed by a key that only its two ends have. Pure."""

from __future__ import annotations

import hmac
import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple, Optional

from trial_runtime.endpoint import MAX_MESSAGE_BYTES

#: Of a life that is not known yet.
NOBODY = bytes(8)

#: Frames and bytes that one file takes; a frame that is larger has a file for itself.
MOST_FRAMES = 256
MOST_BYTES = 4 << 20

#: The size of a bell, and the largest of a file.
BELL_BYTES = 96
LARGEST_FILE = max(MOST_BYTES, MAX_MESSAGE_BYTES) + 4096

_SEAL = 32
_BELL = struct.Struct(">8s8s8sQQ")
_BATCH = struct.Struct(">8s8s8sQI")
_LENGTH = struct.Struct(">I")
_IS_BELL, _IS_BATCH = b"bq bell1", b"bq file1"


class Bell(NamedTuple):
    """The state of one end of a line.

    Attributes:
        life: of this end, drawn when it began.
        peer: the life of the other end that it speaks with; ``NOBODY`` if it knows none.
        newest: the number of the newest file that it has written for that peer.
        read: the number of the newest file of that peer that it has read.
    """

    life: bytes
    peer: bytes
    newest: int = 0
    read: int = 0


def key_of(secret: str, direction: str) -> bytes:
    """The key for what goes in one direction.

    Args:
        secret: that of the worker: its routing id.
        direction: ``up`` or ``down``; what went one way is not taken when it comes back.
    """
    person = f"line {direction}".encode()
    return blake2b(secret.encode(), digest_size=32, person=person).digest()


def pack_bell(bell: Bell, key: bytes) -> bytes:
    """The content of a bell's file, which always has the same length."""
    body = _BELL.pack(_IS_BELL, *bell)
    return (_seal(body, key) + body).ljust(BELL_BYTES, b"\0")


def unpack_bell(content: bytes, key: bytes) -> Optional[Bell]:
    """The bell with this content; None if it is torn, empty or somebody else's."""
    body = content[_SEAL : _SEAL + _BELL.size]
    if len(content) != BELL_BYTES or not hmac.compare_digest(content[:_SEAL], _seal(body, key)):
        return None
    kind, life, peer, newest, read = _BELL.unpack(body)
    return Bell(life, peer, newest, read) if kind == _IS_BELL else None


def pack_batch(bell: Bell, frames: Sequence[bytes], key: bytes) -> bytes:
    """The content of a file of frames.

    Args:
        bell: of its writer; ``bell.newest`` is the number of this file.
        frames: what it holds.
        key: of its direction.
    """
    parts = [_BATCH.pack(_IS_BATCH, bell.life, bell.peer, bell.newest, len(frames))]
    for frame in frames:
        parts += (_LENGTH.pack(len(frame)), frame)
    body = b"".join(parts)
    return _seal(body, key) + body


def unpack_batch(content: bytes, bell: Bell, key: bytes) -> Optional[list[bytes]]:
    """The frames of a file; None if it is torn, of another number or connection, or forged.

    Args:
        content: of the file.
        bell: of its writer, with the number that the file must have as ``newest``.
        key: of its direction.
    """
    body = content[_SEAL:]
    if len(body) < _BATCH.size or not hmac.compare_digest(content[:_SEAL], _seal(body, key)):
        return None
    kind, life, peer, number, count = _BATCH.unpack_from(body)
    if (kind, life, peer, number) != (_IS_BATCH, bell.life, bell.peer, bell.newest):
        return None
    frames, at = [], _BATCH.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size + length
        frames.append(body[at - length : at])
    return frames


def batches(frames: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Frames as they share files, in order."""
    gathered: list[bytes] = []
    size = 0
    for frame in frames:
        if gathered and (len(gathered) == MOST_FRAMES or size + len(frame) > MOST_BYTES):
            yield gathered
            gathered, size = [], 0
        gathered.append(frame)
        size += len(frame)
    if gathered:
        yield gathered


def _seal(body: bytes, key: bytes) -> bytes:
    return blake2b(body, digest_size=_SEAL, key=key).digest()
