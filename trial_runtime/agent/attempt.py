"""One attempt, as its agent keeps it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from trial_runtime import wire
from trial_runtime.agent.base.logs import LogFile
from trial_runtime.agent.base.loop import Timer
from trial_runtime.errors import BequeathError
from trial_runtime.facts import EndReason, StartAttempt, TrialId
from trial_runtime.session_file import SessionFile


class CannotStart(BequeathError):
    """Raised by a runner when an attempt's process cannot be started; says why, in a sentence."""


class Unpreparable(BequeathError):
    """Raised when an attempt cannot start; its text goes to the user."""


class Phase(Enum):
    """The phase of an attempt, as its agent sees it."""

    WAITING = "waiting"  # for its predecessor to be gone, or for its parent's weights
    RUNNING = "running"
    LEAVING = "leaving"  # its process is gone; its last messages are awaited
    OVER = "over"


@dataclass(frozen=True)
class Exit:
    """The end of a process, or of a warm worker's function."""

    code: int | None = None
    signal: int | None = None
    text: str = ""
    cpu_s: float = 0.0
    out_of_memory: bool = False
    lost: bool = False  # nobody saw the end: its parent process is gone
    returned: bool = False  # a function of a warm worker came back: nothing is gone


@dataclass(frozen=True)
class Share:
    """An attempt's share of its host, beside a slot.

    ``variables`` of its environment name the share. ``cores`` are those it is pinned to (none:
    all). ``cgroup`` is the control group that bounds its memory and CPU time.
    """

    variables: dict[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    cgroup: str = ""


@dataclass(eq=False)
class Attempt:
    """The agent's record of an attempt. Changed only by the agent's loop."""

    start: StartAttempt
    session: SessionFile
    session_path: str
    phase: Phase = Phase.WAITING
    pid: int = 0
    seq: int = 0
    metrics: int = 0  # and whatever else counts with them
    announced: int = 0  # how many weights were reported to the head
    has_final: bool = False
    published: wire.PublishedMessage | None = None  # its last announcement of weights
    unreported: wire.PublishedMessage | None = None  # its newest weights, until they are reported
    accepts_stop: bool = False
    attached: bool = False  # a process of it has opened a connection
    stop_reason: EndReason | None = None
    stop_text: str = ""  # more about that, for the user
    remark: str = ""  # more for the text of its end
    killed_at: float = math.inf  # when the grace of an ordered stop is over
    started_at: float = 0.0
    exit: Exit | None = None
    busy: bool = False  # something is being done for it on the share, which may take its time
    has_room: bool = False  # its save path is free
    outputs: list[tuple[int, LogFile]] = field(default_factory=list)  # pipes still open
    taps: dict[str, Callable[[bytes], None]] = field(default_factory=dict)  # by stream
    stderr: LogFile | None = None
    timers: list[Timer] = field(default_factory=list)
    share: Share = field(default_factory=Share)

    @property
    def trial(self) -> TrialId:
        return self.start.trial

    @property
    def number(self) -> int:
        return self.start.attempt

    @property
    def key(self) -> tuple[TrialId, int]:
        return (self.start.trial, self.start.attempt)

    def cancel_timers(self) -> None:
        """Cancel all that is planned for this attempt."""
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()

    def __repr__(self) -> str:
        return f"<Attempt {self.trial}.{self.number} {self.phase.value} pid={self.pid}>"
