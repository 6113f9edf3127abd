"""What an attempt has printed, and goes on to print, read from wherever it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from dispatcher.ports import AttemptFiles

#: Seconds between looks at a file that grows, and how much of it is read at once.
LOOK_EVERY_S = 0.2
CHUNK_BYTES = 1 << 20

#: Older parts that are looked for.
_MOST_PARTS = 10_000


def parts(files: AttemptFiles, stream: str) -> list[str]:
    """The files of a stream, the oldest first."""
    found = [each.path for each in files.list(stream, most=_MOST_PARTS).entries if not each.link]
    numbers = {path: path.partition(".")[2] or "0" for path in found}
    return sorted(found, key=lambda path: -int(numbers[path]))


def whole(files: AttemptFiles, stream: str) -> Iterator[bytes]:
    """All that there is of a stream, now."""
    for path in parts(files, stream):
        yield from _rest(files, path, 0, None)


def follow(
    files: AttemptFiles,
    stream: str,
    over: Callable[[], bool],
    *,
    look_every_s: float = LOOK_EVERY_S,
) -> Iterator[bytes]:
    """What is there of the newest part, and what comes, until the attempt is ``over``; the file
    may be rotated meanwhile."""
    taken, identity = 0, None
    while True:
        done = over()  # asked before the look, so that what came in between is seen
        piece = files.read(stream, taken, CHUNK_BYTES)
        if identity is not None and (piece is None or piece.identity != identity):
            # Begun anew: what had not been read of the old one has another name now.
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
    """From so many bytes on, as long as it is that file."""
    while (piece := files.read(path, taken, CHUNK_BYTES)) is not None and piece.data:
        if identity is not None and piece.identity != identity:
            return
        taken += len(piece.data)
        yield piece.data
