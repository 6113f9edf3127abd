"""Messages between rank 0 of an allocation and its followers.

Both sides repeat what they want, or are, each second and whenever it changes: so nothing is lost
with a connection that breaks, and nothing has to be counted.
"""

from __future__ import annotations

from typing import Literal, Optional, TypeVar

import msgspec

from trial_runtime.session_file import SessionFile

#: Seconds between two messages of each side, and after which a silent one is lost.
BEAT_S, SILENT_S = 1.0, 15.0

#: The longest text in a report (characters): the end of a trial's standard error.
MOST_TEXT = 4096


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attempt that a follower is to run: its session as rank 0 has it, and its variables."""

    session: SessionFile
    variables: dict[str, str] = {}


class Wish(msgspec.Struct, frozen=True, omit_defaults=True):
    """The wishes of rank 0 for one follower.

    ``key``: the attempt (trial, number) that it is to have begun; None: none. ``job``: that
    attempt, until the follower has reported it. ``stop``: the signal that ends it, 0 for none.
    ``leave``: why the follower is to end, empty while it is to stay.
    """

    key: Optional[tuple[int, int]] = None
    job: Optional[Job] = None
    stop: int = 0
    leave: str = ""


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a follower.

    ``token``: the secret of the meeting. ``start``: of this one process. ``key``: its newest
    attempt. ``code``, ``signal``, ``text``, ``cpu_s``: how that ended, with the phase ``over``.
    ``leaving``: its place is taken back.
    """

    token: str
    rank: int
    start: str
    host: str = ""
    key: Optional[tuple[int, int]] = None
    phase: Literal["idle", "running", "over"] = "idle"
    code: Optional[int] = None
    signal: Optional[int] = None
    text: str = ""
    cpu_s: float = 0.0
    leaving: bool = False


T = TypeVar("T", Wish, Report)

_encode = msgspec.msgpack.Encoder().encode


def encode(message: Wish | Report) -> bytes:
    """A message as one frame."""
    return _encode(message)


def decode(frame: bytes, kind: type[T]) -> T | None:
    """The message of a frame; None if it is none of that kind."""
    try:
        return msgspec.msgpack.decode(frame, type=kind)
    except (msgspec.MsgspecError, RecursionError):  # nested too deep
        return None
