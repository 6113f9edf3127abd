"""The report of an event that the core has refused: a file that is enough to refuse it again.

It names the row that the journal ended with, and holds the events that were applied behind it
and are in no row yet.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from dispatcher import codec
from dispatcher.core.events import Event, is_journalled
from dispatcher.core.ids import TrialId
from dispatcher.errors import UserError
from dispatcher.ports import JournalRow, RefusedEvent
from dispatcher.store.replay.describing import plain

#: Reports that are kept; the oldest goes first.
REPORTS_KEPT: Final = 20

_PREFIX: Final = "refused-"


class RefusedEvents(NamedTuple):
    """The content of a report, to be applied behind row ``until``: the last event was refused."""

    until: int
    trial: int | None
    events: list[tuple[float, Event]]


class _Named(msgspec.Struct):
    at: float
    kind: str
    fields: msgspec.Raw


class _Report(msgspec.Struct):
    until: int
    trial: int | None
    batch: list[_Named]
    event: _Named


def trial_of(refusal: RefusedEvent) -> TrialId | None:
    """Return the trial that an error or its event names; None if neither does."""
    named: TrialId | None = getattr(refusal.error, "trial", None)
    return getattr(refusal.entry.event, "trial", None) if named is None else named


def place_of(refusal: RefusedEvent) -> str:
    """Return where an event was read: ``the tuner host, frame 391, message 3 of 5``."""
    peer = {"": "this head", "tuner": "the tuner host"}.get(refusal.owner, refusal.owner)
    if refusal.frame is None:
        return peer
    number, place, many = refusal.frame
    return f"{peer}, frame {number}, message {place} of {many}"


def rows_to_come(refusal: RefusedEvent) -> list[JournalRow]:
    """Return the rows that the events before the refused one would have had."""
    kept = [one for one in refusal.batch if is_journalled(one.event)]
    return [
        JournalRow(number, entry.at, entry.event)
        for number, entry in enumerate(kept, refusal.row + 1)
    ]


def place_for(folder: Path, row: int) -> Path:
    """Return the name of a new report, about what would have been that row; make room for it.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(exist_ok=True)
    kept = sorted(folder.glob(f"{_PREFIX}*.json"), key=lambda path: path.stat().st_mtime)
    for old in kept[: max(0, len(kept) + 1 - REPORTS_KEPT)]:
        old.unlink()
    path, more = folder / f"{_PREFIX}{row}.json", 1
    while path.exists():
        more += 1
        path = folder / f"{_PREFIX}{row}-{more}.json"
    return path


def write_report(
    path: Path,
    refusal: RefusedEvent,
    last: Iterable[JournalRow],
    command: str,
    mask: Callable[[str], str],
) -> None:
    """Write the report of a refusal, readable by its owner only.

    Args:
        path: a new file.
        refusal: with the state that refused.
        last: rows of the journal that name the trial, the newest first.
        command: shows the refusal again.
        mask: hides secrets in every text.

    Raises:
        OSError: it cannot be written.
    """
    state, number = refusal.state, trial_of(refusal)
    trial = None if number is None else state.trials.get(number)
    wait = None if number is None else state.waits.get(number)
    worker = None if trial is None or trial.worker is None else state.workers.get(trial.worker)
    document = {
        "bequeath": _version(),
        "epoch": state.epoch,
        "until": refusal.row,
        "row": refusal.row + len(rows_to_come(refusal)) + 1,
        "trial": number,
        "peer": refusal.owner,
        "from": place_of(refusal),
        "error": refusal.error.message,
        "event": _named(refusal.entry.at, refusal.entry.event),
        "batch": [_named(entry.at, entry.event) for entry in refusal.batch],
        "phase": state.phase.value,
        "record": None if trial is None else plain(trial),
        "wait": None if wait is None else plain(wait),
        "worker": None if worker is None else plain(worker),
        "last": [{"row": one.number, **_named(one.at, one.event)} for one in last],
        "command": command,
    }
    text = json.dumps(_masked(document, mask), indent=1, ensure_ascii=False)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(f"{text}\n")


def read_report(path: Path) -> RefusedEvents:
    """Read what :func:`write_report` has written.

    Raises:
        UserError: it cannot be read, or is no such report.
    """
    try:
        report = msgspec.json.decode(path.read_bytes(), type=_Report)
        events = [(one.at, _event(one)) for one in (*report.batch, report.event)]
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except codec.UNREADABLE as error:
        raise UserError(
            f"is no report of a refused event: {error}",
            hint="such files lie in the folder 'reports' of an experiment",
            where=str(path),
        ) from error
    return RefusedEvents(report.until, report.trial, events)


def _version() -> str:
    try:
        return importlib.metadata.version("bequeath")
    except importlib.metadata.PackageNotFoundError:
        return ""  # run out of a checkout


def _named(at: float, event: Event) -> dict[str, Any]:
    return {
        "at": at,
        "kind": type(event).__name__,
        "fields": json.loads(msgspec.json.encode(event)),
    }


def _event(one: _Named) -> Any:
    if one.kind not in codec.EVENT_CLASSES:
        raise ValueError(f"there is no event {one.kind!r}")
    return msgspec.json.decode(one.fields, type=codec.EVENT_CLASSES[one.kind])


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    match value:
        case str():
            return mask(value)
        case list():
            return [_masked(one, mask) for one in value]
        case dict():
            return {name: _masked(one, mask) for name, one in value.items()}
        case _:
            return value
