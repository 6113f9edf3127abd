"""Files replaced in a loop and read at the same time, on all machines at once.

Each machine replaces its own file and reads those of the others in turn, so that readers and
writers meet at any moment. A content tells by itself whether it is whole.
"""

from __future__ import annotations

import contextlib
import os
import time

from nfs_setup.verify.facts import Churned
from nfs_setup.verify.files import code_of, digest, get, replace

_BODY_BYTES = 64 << 10
_DIGEST_BYTES = 64
_NUMBER_BYTES = 8
_MOST_ROUNDS = 2000


def seed(folder: str) -> None:
    """The first of one machine's files, before anybody reads."""
    replace(_file(folder), _content(0))


def churn(own: str, others: dict[str, str], seconds: float) -> Churned:
    """Replace and read without a pause, once at least.

    Args:
        own: the folder of this machine.
        others: the folders of the other machines, by their names.
        seconds: how long.
    """
    counts = Churned(0, *(dict.fromkeys(others, 0) for _ in range(5)))
    newest = dict.fromkeys(others, -1)
    wrote = 0
    last = time.monotonic() + seconds
    while not wrote or (time.monotonic() < last and wrote < _MOST_ROUNDS):
        wrote += 1
        replace(_file(own), _content(wrote))
        for name, folder in others.items():
            try:
                number = _number(get(_file(folder)))
            except OSError as error:
                kind = {"ENOENT": counts.missing, "ESTALE": counts.stale}.get(code_of(error))
                if kind is None:
                    raise
                kind[name] += 1
                continue
            if number is None:
                counts.torn[name] += 1
                continue
            counts.reads[name] += 1
            counts.backwards[name] += number < newest[name]
            newest[name] = max(number, newest[name])
    return Churned(wrote, counts.reads, counts.torn, counts.missing, counts.stale, counts.backwards)


def _file(folder: str) -> str:
    return os.path.join(folder, "churn")


def _content(number: int) -> bytes:
    body = number.to_bytes(_NUMBER_BYTES, "big") + os.urandom(_BODY_BYTES)
    return digest(body).encode() + body


def _number(content: bytes) -> int | None:
    """The number of a content; None if it is not whole."""
    checksum, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    with contextlib.suppress(UnicodeDecodeError):
        if checksum.decode("ascii") == digest(body):
            return int.from_bytes(body[:_NUMBER_BYTES], "big")
    return None
