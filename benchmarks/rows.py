"""Rows of the results table, and the few statistics they need."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TypedDict


class Row(TypedDict):
    """One measured claim. ``ok`` is None without a target, or where it could not be measured."""

    what: str
    target: str
    measured: str
    ok: bool | None
    detail: str


def row(what: str, target: str, measured: str, ok: bool | None, detail: str = "") -> Row:
    """A row from its cells."""
    return Row(what=what, target=target, measured=measured, ok=ok, detail=detail)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)
