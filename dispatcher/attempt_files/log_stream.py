"""The output of an attempt, so far and as it grows, read from any machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from dispatcher.ports import AttemptFiles

#: Seconds between looks at a file that grows, and how much of it is read at once.
LOOK_EVERY_S = 0.2
CHUNK_BYTES = 1 << 20

#: Older parts that are looked for.
_MOST_PARTS = 10_000


def parts(files: AttemptFiles, stream: str) -> list[str]:
    """List the files of a stream, the oldest first."""
    found = [each.path for each in files.list(stream, most=_MOST_PARTS).entries if not each.link]
    numbers = {path: path.removeprefix(stream).lstrip(".") or "0" for path in found}
    return sorted(found, key=lambda path: -int(numbers[path]))


class StreamPart(NamedTuple):
    """A part of an output: where it begins, how long all of it is, and its bytes."""

    start: int
    size: int
    data: bytes


def part(
    files: AttemptFiles, stream: str, sizes: Mapping[str, int], start: int, most: int
) -> StreamPart:
    """Read a part of a stream: all of its files, the oldest first, count as one.

    Args:
        files: the attempt's.
        stream: its name.
        sizes: of its files by path (bytes), as they were listed; what has come since is left out.
        start: the first byte; below 0 counted from the end.
        most: bytes at most.
    """
    paths = [path for path in parts(files, stream) if path in sizes]
    size = sum(sizes[path] for path in paths)
    start = max(0, size + start) if start < 0 else min(start, size)
    data = bytearray()
    before = 0
    for path in paths:
        after = before + sizes[path]
        while len(data) < most and before <= start + len(data) < after:
            at = start + len(data) - before
            piece = files.read(path, at, min(most - len(data), sizes[path] - at))
            if piece is None or not piece.data:
                break
            data += piece.data
        before = after
    return StreamPart(start, size, bytes(data))


def whole(files: AttemptFiles, stream: str) -> Iterator[bytes]:
    """Yield all of a stream that there is now."""
    for path in parts(files, stream):
        yield from _rest(files, path, 0, None)


def follow(
    files: AttemptFiles,
    stream: str,
    over: Callable[[], bool],
    *,
    look_every_s: float = LOOK_EVERY_S,
    taken: int = 0,
) -> Iterator[bytes]:
    """Yield the newest part of a stream and all that is appended, until the attempt is over; the
    file may be rotated meanwhile.

    Args:
        files: the attempt's.
        stream: ``stdout`` or ``stderr``, or that of one of several nodes: ``stdout.rank1``.
        over: whether the attempt has ended.
        look_every_s: seconds between looks.
        taken: bytes of the newest part that are passed over.
    """
    identity = None
    while True:
        done = over()  # before the look, so that output in between is seen
        piece = files.read(stream, taken, CHUNK_BYTES)
        if identity is not None and (piece is None or piece.identity != identity):
            # Rotated: the unread rest of the old file has another name now.
            yield from _rest(files, f"{stream}.1", taken, identity)
            taken, identity = 0, None
            if piece is not None:
                continue
        elif piece is not None:
            identity = piece.identity
            taken += len(piece.data)
            if piece.data:
                yield piece.data
                continue  # there may be more already
        if done:
            return
        time.sleep(look_every_s)


def _rest(files: AttemptFiles, path: str, taken: int, identity: str | None) -> Iterator[bytes]:
    """Yield a file from so many bytes on, as long as it is that file."""
    while (piece := files.read(path, taken, CHUNK_BYTES)) is not None and piece.data:
        if identity is not None and piece.identity != identity:
            return
        taken += len(piece.data)
        yield piece.data
