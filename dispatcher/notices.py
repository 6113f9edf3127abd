"""Notices of a head to its observers: the terminal, a notebook, its log."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoticeKind(StrEnum):
    """The subject of a notice."""

    STARTED = "started"
    TUNER_ERROR = "tuner_error"
    TUNER_NOTE = "tuner_note"
    STALL = "stall"
    STACKS = "stacks"
    PEER_FAULT = "peer_fault"
    RETENTION = "retention"
    WORKER = "worker"
    DISK = "disk"
    FILES = "files"
    JOURNAL = "journal"
    TRIAL = "trial"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that happened. ``text`` is for people; ``trial`` is there if it is about one."""

    kind: NoticeKind
    text: str = ""
    trial: int | None = None
