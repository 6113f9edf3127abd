"""Versions of shared stores, for people: their trials, their sizes, and why they stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dispatcher.core.model import State
from dispatcher.core.stores import bound_of, readers


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version that is there. ``nbytes``: of all files that a reader reads; ``needed``: why it
    stays beside the newest, or that it is one of them."""

    store: str
    number: int
    trial: int
    attempt: int
    nbytes: int
    digest: str
    path: str
    needed: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class StoreRow:
    """One store: the number of versions that it had in all, and those that are there."""

    name: str
    published: int
    versions: tuple[VersionRow, ...]


def stores_of(state: State) -> list[StoreRow]:
    """List all stores of an experiment, by name."""
    read_by: dict[tuple[str, int], str] = {}
    for trial, read in readers(state):
        read_by.setdefault(read, f"trial {trial} reads it")
    found = []
    for name, versions in sorted(state.stores.items()):
        rows = []
        bound = bound_of(state, name)
        for number, version in enumerate(versions, 1):
            if version is None:
                continue
            if not bound:
                needed = "all are kept"
            elif number > len(versions) - bound:
                needed = f"of the newest {bound}"
            elif (name, number) in read_by:
                needed = read_by[name, number]
            elif number in state.held_versions.get(name, ()):
                needed = "the tuner holds it"
            else:
                needed = "an open request may pin it, or the next sweep removes it"
            rows.append(
                VersionRow(
                    name,
                    number,
                    int(version.trial),
                    version.attempt,
                    version.nbytes,
                    version.digest,
                    version.path,
                    needed,
                )
            )
        found.append(StoreRow(name, len(versions), tuple(rows)))
    return found
