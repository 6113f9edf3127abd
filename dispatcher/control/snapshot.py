"""A running head's answer to ``snapshot``: the one type by which ``top``, ``status``, ``why``,
notebooks and NNI's layouts show it.

Keys may be added; those with a default are missing in answers of older heads. Pure.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dispatcher.errors import ProtocolError


class StateCounts(msgspec.Struct, frozen=True):
    """Requests and trials in each state that is not over; always whole."""

    open: int
    blocked: int
    parked: int
    held: int
    queued: int
    running: int
    backoff: int
    delivering: int

    @property
    def waiting(self) -> int:
        """The number of those that wait for parents."""
        return self.blocked + self.held

    @property
    def stands(self) -> bool:
        """Whether some wait and nothing moves: a rate of the past says nothing of what is to
        come."""
        moving = self.open + self.queued + self.running + self.backoff + self.delivering
        return self.waiting > 0 and not moving


class RunningTrial(msgspec.Struct, frozen=True):
    """A trial that runs; ``last`` is its newest metric as JSON text. The last four are there once
    it was measured."""

    trial: int
    attempt: int
    state: str
    worker: str | None
    parent: int | None
    for_s: float
    last: str | None
    cpu: float | UnsetType = UNSET  # percent of one core
    rss_bytes: int | UnsetType = UNSET
    devices: list[str] | UnsetType = UNSET
    gpu_bytes: int | UnsetType | None = UNSET


class WaitingRequest(msgspec.Struct, frozen=True, kw_only=True, rename={"parents": "for"}):
    """A request, or a trial with parameters, that waits for parents, or in the tuner's own code."""

    trial: int
    mode: str
    place: str = ""
    parents: list[int]
    for_s: float


class RequestInTuner(msgspec.Struct, frozen=True):
    """A request that the tuner works on."""

    trial: int
    for_s: float


class WorkerSnapshot(msgspec.Struct, frozen=True):
    """A worker; ``waiting`` says for what an allocation waits, ``ends_in_s`` until when it is,
    ``way`` by which of several ways its agent reaches the head."""

    name: str
    slots: int
    busy: int
    alive: bool
    waiting: str = ""
    waits_s: float | None = None
    ends_in_s: float | None = None
    way: str | None = None


class DeviceSnapshot(msgspec.Struct, frozen=True):
    """A device with its newest measures, and the trials that hold it."""

    worker: str
    id: str
    index: int
    name: str
    memory_bytes: int
    used_bytes: int | None
    utilization: float | None
    watts: float | None
    celsius: float | None
    trouble: str
    old_s: float
    trials: list[int]


class SnapshotReason(msgspec.Struct, frozen=True):
    """Why nothing, or not more, is running: a word of an enumeration, and a sentence."""

    cause: str
    text: str


class HeadSnapshot(msgspec.Struct, frozen=True):
    """An experiment as its head sees it at one moment. Lists by name are cut, counts are whole."""

    phase: str
    reason: str
    epoch: int
    slots: int
    lookahead: int
    max_trials: int | None
    max_duration_s: float | None
    active_s: float
    submitted: int
    ended: int
    counts: StateCounts
    running: list[RunningTrial]
    waiting: list[WaitingRequest]
    open: list[RequestInTuner]
    workers: list[WorkerSnapshot]
    why: SnapshotReason
    troubles: list[str] = []
    refused: dict[str, dict[str, int]] = {}
    devices: list[DeviceSnapshot] = []

    @classmethod
    def of(cls, answer: Any) -> HeadSnapshot:
        """Read a head's answer. Raises ``ProtocolError``."""
        try:
            return msgspec.convert(answer, cls)
        except msgspec.ValidationError as error:
            raise ProtocolError(
                f"the head's snapshot cannot be read: {error}",
                hint="it may be of another version: stop it, and resume with this one",
            ) from error
