"""One call of ``generate_parameters``, and the state of its thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Say = Callable[[object], None]


@dataclass(slots=True, eq=False)
class Request:
    """State of a request from its opening to its answer.

    Its own thread writes it, except ``cancelled`` and ``awaited`` (the gate, under its lock),
    ``foreign`` and ``ran_ns`` (the I/O thread).
    """

    trial: int
    say: Say  # where its events go: to the head, or to the replay
    thread: int = 0  # ident of the thread that runs it, 0 before and after
    native_thread: int = 0  # the kernel's number of that thread
    cancelled: bool = False
    unwanted: bool = False  # its answer is known; its return value is dropped in silence
    tickets: int = 0  # waits so far
    turn: object = None  # the wait that last let it run, for the run token
    since: float = 0.0  # when it last began to run author's code, monotonic
    foreign: bool = False  # the head knows that it stands still
    ran_ns: int = -1  # CPU time of its thread at the last look
    looked: float = 0.0  # when that was, monotonic
    awaited: set[int] = field(default_factory=set)  # parents whose awaiting the head knows of
