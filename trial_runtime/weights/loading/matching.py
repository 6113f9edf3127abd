"""Matching stored tensors with wanted ones by names, types and shapes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from trial_runtime.errors import WeightsMismatch
from trial_runtime.weights.format.dtypes import kind

Resize = Literal["skip", "overlap"]


@dataclass(frozen=True)
class Form:
    """Type and shape of a tensor."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Reshaped:
    """A tensor that is there on both sides and does not fit."""

    name: str
    stored: Form
    wanted: Form
    copied: bool  # whether the overlapping corner was taken over


@dataclass(frozen=True)
class MatchReport:
    """The result of a load; names are those of the tensors that were loaded into.

    ``reshaped`` holds tensors whose shapes differ, or whose types cannot be converted
    (complex or floating point into anything less); ``converted`` those that were loaded
    into another type of the same kind.
    """

    loaded: tuple[str, ...]
    missing: tuple[str, ...]  # wanted, not stored
    unexpected: tuple[str, ...]  # stored, not wanted
    reshaped: tuple[Reshaped, ...]
    converted: tuple[str, ...] = ()
    key: str = ""  # the part of the stored state that was taken, "" for all of it
    bytes_read: int = 0
    digest: str = ""  # of the manifest that was read

    @property
    def complete(self) -> bool:
        """Whether every tensor wanted was loaded in full."""
        return not self.missing and not self.reshaped

    def __str__(self) -> str:
        return (
            f"{len(self.loaded)} loaded, {len(self.missing)} missing, "
            f"{len(self.unexpected)} unexpected, {len(self.reshaped)} reshaped"
        )


def selected(names: Iterable[str], patterns: str | Iterable[str] | None) -> list[str]:
    """The names that one of the patterns fits (as in a shell, case counts); all for None."""
    if patterns is None:
        return list(names)
    wanted = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted)]


def match(
    stored: Mapping[str, Form], wanted: Mapping[str, Form], *, resize: Resize = "skip"
) -> MatchReport:
    """Pair stored and wanted tensors by name.

    Args:
        stored: type and shape of each stored tensor, by name.
        wanted: the same of the tensors to load into.
        resize: whether shapes that differ are left alone or share a corner, see ``load``.
    """
    loaded, converted, reshaped = [], [], []
    for name, target in wanted.items():
        source = stored.get(name)
        if source is None:
            continue
        if source.shape != target.shape or not _convertible(source.dtype, target.dtype):
            fits = resize == "overlap" and overlaps(source, target)
            reshaped.append(Reshaped(name, source, target, fits))
            continue
        loaded.append(name)
        if source.dtype != target.dtype:
            converted.append(name)
    return MatchReport(
        loaded=tuple(loaded),
        missing=tuple(name for name in wanted if name not in stored),
        unexpected=tuple(name for name in stored if name not in wanted),
        reshaped=tuple(reshaped),
        converted=tuple(converted),
    )


def overlaps(source: Form, target: Form) -> bool:
    """Whether there is a corner to copy: as many dimensions, and values that convert."""
    return len(source.shape) == len(target.shape) and _convertible(source.dtype, target.dtype)


def overlap(source: Form, target: Form) -> tuple[slice, ...]:
    """The corner that two shapes share."""
    return tuple(slice(0, min(a, b)) for a, b in zip(source.shape, target.shape))


_RANK = {"bool": 0, "integer": 1, "float": 2, "complex": 3}


def _convertible(source: str, target: str) -> bool:
    return source == target or (
        kind(source) != "bool" and _RANK[kind(source)] <= _RANK[kind(target)]
    )


def split_by_key(stored: Iterable[str], wanted: Iterable[str], key: str | None) -> str:
    """Find the part of the stored state in which to look for the wanted names.

    A model saved as ``{"model": …, "optimizer": …}`` has names such as ``model.fc.weight``
    while the model itself asks for ``fc.weight``. If no name fits as it is, and exactly
    one first key makes names fit, that key is meant.

    Args:
        stored: names of the stored tensors.
        wanted: names of the tensors to load into.
        key: the part that the caller named; None: find one.

    Returns:
        The key of the part; "" for all of the state.
    """
    if key is not None:
        return key
    names, asked = list(stored), set(wanted)
    if not asked or not asked.isdisjoint(names):
        return ""
    fitting = {head for head, _, tail in (name.partition(".") for name in names) if tail in asked}
    return fitting.pop() if len(fitting) == 1 else ""


def demand_all(report: MatchReport, where: str) -> None:
    """Refuse a match that is not one to one.

    Raises:
        WeightsMismatch: names the first tensors of each kind.
    """
    faults = []
    for title, names in (
        ("missing", report.missing),
        ("unexpected", report.unexpected),
        ("of another shape", tuple(item.name for item in report.reshaped)),
    ):
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            faults.append(f"{title}: {', '.join(names[:5])}{more}")
    if faults:
        raise WeightsMismatch(
            "stored and wanted tensors differ; " + "; ".join(faults),
            hint="load without strict=True to take what fits",
            where=where,
        )
