"""Extent of a survey: how much it measures, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass

from nfs_setup.mounts import READER_PATIENCE_S


@dataclass(frozen=True)
class Plan:
    """Bounds of a survey.

    Attributes:
        big_bytes: of the big file; a quarter of the free room at most.
        rounds: small files that are published.
        watch_s: how long readers look for what others published.
        churn_s: how long files are replaced while they are read.
        hold_s: how long a lock is held at most.
        limit_s: for a probe that should take no time.
        quick: machines alone, without big files.
    """

    big_bytes: int = 64 << 20
    rounds: int = 20
    watch_s: float = READER_PATIENCE_S + 5.0
    churn_s: float = 2.0
    hold_s: float = 10.0
    limit_s: float = 30.0
    quick: bool = False
