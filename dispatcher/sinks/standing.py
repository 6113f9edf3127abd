"""How far each sink is: written by the process that feeds it, read for ``status`` and the page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dispatcher.folders.names import SINKS_NAME
from dispatcher.folders.small_file import read_object
from dispatcher.queries import ExperimentReader
from dispatcher.queries.records import Record
from trial_runtime import durable_file

_SUFFIX: Final = ".state.json"

#: Characters of an error, and sinks, that are shown.
_MOST_TEXT: Final = 500
_MOST_SINKS: Final = 32


@dataclass(frozen=True, slots=True)
class SinkStanding(Record):
    """One sink of an experiment.

    ``behind`` counts trials that have run and ended, and were not taken yet; ``heard_at`` is when
    its tracker has last taken all that was there (seconds since the epoch), ``error`` what is in
    the way since.
    """

    name: str
    kind: str
    target: str
    behind: int
    taken: int
    heard_at: float | None
    error: str


def write_standing(folder: Path, one: SinkStanding) -> None:
    """Write down how far a sink is. Raises ``OSError``.

    Args:
        folder: the experiment's.
        one: what is shown; its error without secrets.
    """
    place = folder / SINKS_NAME
    place.mkdir(exist_ok=True)
    content = json.dumps(one.to_json()).encode()
    durable_file.replace(place / f"{one.name}{_SUFFIX}", content, durable=False)


def standings(folder: Path, reader: ExperimentReader) -> tuple[SinkStanding, ...]:
    """How far the sinks of an experiment are, by what was taken and what is in the store now.

    Args:
        folder: the experiment's.
        reader: of its store.

    Raises:
        StoreError: it cannot be read.
    """
    files = sorted((folder / SINKS_NAME).glob(f"*{_SUFFIX}"))[:_MOST_SINKS]
    found = [each for each in map(_read, files) if each is not None]
    if not found:
        return ()
    row = reader.row("SELECT count(*) FROM trials WHERE state = 'ended' AND attempt > 0")
    ended = 0 if row is None else int(row[0])
    return tuple(
        SinkStanding(
            name=each["name"],
            kind=each["kind"],
            target=each["target"],
            behind=max(0, ended - each["taken"]),
            taken=each["taken"],
            heard_at=each["heard_at"],
            error=each["error"][:_MOST_TEXT],
        )
        for each in found
    )


def _read(path: Path) -> dict[str, Any] | None:
    """Read what was written down; None if it is no such record."""
    found = read_object(path)
    texts = all(isinstance(found.get(key), str) for key in ("name", "kind", "target", "error"))
    heard = found.get("heard_at")
    fits = texts and isinstance(found.get("taken"), int) and isinstance(heard, float | None)
    return found if fits else None
