"""Facts of attempts, which agents report to the core, and the core's orders to agents.

One set of types from the agent to the core: the agent makes a fact, :mod:`trial_runtime.fact_wire`
carries it as an array of its fields, the head applies and journals it as it is. So the order of
the fields is that of the arrays (of one it is not, which fact_wire names), and that in which other
packages give them: new ones go to the end, with a default.

The core imports this, so it needs the standard library only; machines of trials do, so it needs no
more than Python 3.9.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, NewType, Optional, Union

#: 3.9 has no slots for dataclasses.
_SLOTS = {"slots": True} if sys.version_info >= (3, 10) else {}

TrialId = NewType("TrialId", int)
WorkerId = NewType("WorkerId", str)

# The bounds of what a stranger may send, which fact_wire holds it to.
Count = Annotated[int, "0 to 2**53-1"]
Code = Annotated[int, "within 2**53"]
Seconds = Annotated[float, "0 to 1e12"]
Amount = Annotated[float, "0 to 1e12, of cores or devices"]
Name = Annotated[str, "256 characters"]
Text = Annotated[str, "64 KiB"]
Kind = Annotated[str, "a kind of weights"]
#: As long as its frame allows: checked apart, or of the head, which is trusted.
Unbounded = Annotated[str, "unbounded"]


class EndReason(str, Enum):
    """How an attempt ended, as its agent saw it."""

    FINISHED = "finished"
    FAILED = "failed"
    SIGNALLED = "signalled"
    OUT_OF_MEMORY = "out of memory"
    TIMED_OUT = "timed out"
    START_FAILED = "could not start"
    KILLED = "killed by the user"
    STOPPED_EARLY = "stopped early"
    SHUTDOWN = "stopped with the experiment"
    LOST = "lost"
    PREEMPTED = "preempted"  # its place was taken for something more urgent

    __str__ = str.__str__  # the text, as enum.StrEnum of later versions has it


@dataclass(frozen=True, **_SLOTS)
class Weights:
    """Committed weights. ``kind`` is ``bequeath`` (manifest) or ``files`` (anything else)."""

    digest: Name
    kind: Kind
    nbytes: Count


@dataclass(frozen=True, **_SLOTS)
class Pinned:
    """A version of a shared store that a trial reads, and where it finds it. ``path`` is relative
    to the folder of the experiment's stores."""

    store: str
    number: int
    path: str
    digest: str


# -- facts: agent → core -------------------------------------------------------------------


@dataclass(frozen=True, **_SLOTS)
class AttemptStarted:
    """The attempt's process is there."""

    trial: TrialId
    attempt: Count
    pid: Count = 0


@dataclass(frozen=True, **_SLOTS)
class MetricReported:
    """An intermediate metric, as JSON text. ``seq`` numbers the reports of one attempt from 1.

    Not journalled as an event: the metrics table is its journal.
    """

    trial: TrialId
    attempt: Count
    seq: Count
    value: Unbounded


@dataclass(frozen=True, **_SLOTS)
class FinalReported:
    """The final metric. A second one is recorded and not counted."""

    trial: TrialId
    attempt: Count
    seq: Count
    value: Unbounded


@dataclass(frozen=True, **_SLOTS)
class WeightsPublished:
    """The trial wrote complete weights and reported their digest. The newest one counts."""

    trial: TrialId
    attempt: Count
    seq: Count
    weights: Weights


@dataclass(frozen=True, **_SLOTS)
class VersionOffered:
    """The trial wrote what would be version ``base + 1`` of a shared store, and asks whether it is.
    ``path`` is relative to the folder of the experiment's stores. Sent again until answered."""

    trial: TrialId
    attempt: Count
    seq: Count
    store: Name
    base: Count
    path: Name
    digest: Name
    nbytes: Count


@dataclass(frozen=True, **_SLOTS)
class AttemptEnded:
    """The attempt's processes are gone. ``weights`` are plain files that its agent found at the
    save path, synced and digested."""

    trial: TrialId
    attempt: Count
    reason: EndReason
    exit_code: Optional[Code] = None
    signal: Optional[Code] = None
    text: Text = ""
    weights: Optional[Weights] = None
    cpu_s: Seconds = 0.0
    wall_s: Seconds = 0.0


AttemptFact = Union[
    AttemptStarted, MetricReported, FinalReported, WeightsPublished, VersionOffered, AttemptEnded
]


# -- orders: core → agent ------------------------------------------------------------------


@dataclass(frozen=True, **_SLOTS)
class StartAttempt:
    """Run an attempt. Idempotent by (trial, attempt). Paths are relative to the weights root
    (or absolute, for read roots); ``restore_digest`` is what the child must find there.

    ``worker`` is the address, and is not sent. ``devices`` are the ids of those it may use,
    ``device_share`` the part of its one device (0: all of each); ``cpus`` and ``memory_bytes`` are
    bounds, 0 for none.
    """

    worker: WorkerId
    trial: TrialId
    attempt: Count
    parameters: Unbounded
    save_path: Optional[Unbounded] = None
    restore_path: Optional[Unbounded] = None
    restore_digest: Optional[Unbounded] = None
    restore_kind: Optional[Unbounded] = None
    devices: tuple[Name, ...] = ()
    cpus: Amount = 0.0
    memory_bytes: Count = 0
    device_share: Amount = 0.0
    versions: tuple[Pinned, ...] = ()


@dataclass(frozen=True, **_SLOTS)
class StopAttempt:
    """End an attempt: a request to stop, then SIGTERM, then SIGKILL after ``grace_s``."""

    worker: WorkerId
    trial: TrialId
    attempt: Count
    reason: EndReason
    grace_s: Seconds


AttemptOrder = Union[StartAttempt, StopAttempt]
