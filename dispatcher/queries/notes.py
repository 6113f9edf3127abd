"""Notes, tags and stars as they are read: with each trial, and of the experiment as a whole.

Stores of older schemas have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import Record, WrittenNote

#: The number that stands for the experiment where others are trials' (``store.notes``).
OF_EXPERIMENT: Final = -1

#: The first schema that has them.
_SINCE: Final = "0004"

#: A tag that begins so names the data set, above the experiment file's key.
_DATA_SET: Final = "dataset:"


@dataclass(frozen=True, slots=True)
class GivenAnnotations(Record):
    """All that people gave one trial, or the experiment: the oldest note first, tags in order."""

    tags: tuple[str, ...]
    starred: bool
    notes: tuple[WrittenNote, ...]


def annotations_of(reader: ExperimentReader, trial: int = OF_EXPERIMENT) -> GivenAnnotations:
    """Read what people gave a trial, or by itself the experiment."""
    if reader.schema < _SINCE:
        return GivenAnnotations((), starred=False, notes=())
    with reader.moment():
        notes = reader.rows("SELECT * FROM notes WHERE trial = ? ORDER BY number", (trial,))
        tags = reader.rows("SELECT tag FROM tags WHERE trial = ? ORDER BY tag", (trial,))
        star = reader.row("SELECT 1 FROM stars WHERE trial = ?", (trial,))
    return GivenAnnotations(
        tags=tuple(row["tag"] for row in tags),
        starred=star is not None,
        notes=tuple(WrittenNote(row["number"], row["at"], row["text"]) for row in notes),
    )


def given_to(reader: ExperimentReader, trial: str = "trials.id") -> str:
    """Return columns for a query over trials: ``tags`` as JSON, ``starred``, ``notes`` (how many).

    Args:
        reader: the experiment.
        trial: the expression of a trial's number.
    """
    if reader.schema < _SINCE:
        return "'[]' AS tags, 0 AS starred, 0 AS notes"
    return (
        f"(SELECT json_group_array(tag) FROM tags WHERE trial = {trial}) AS tags, "  # noqa: S608
        f"EXISTS (SELECT 1 FROM stars WHERE trial = {trial}) AS starred, "
        f"(SELECT count(*) FROM notes WHERE trial = {trial}) AS notes"
    )


def trials_with_annotations(reader: ExperimentReader) -> str:
    """Return trials with :func:`given_to` as the source of a query, by the name ``trials``."""
    return f"(SELECT trials.*, {given_to(reader)} FROM trials) AS trials"  # noqa: S608


def data_set(reader: ExperimentReader, tags: tuple[str, ...]) -> str:
    """Return the data set of an experiment: by a tag, else by its file; empty if neither says."""
    for tag in tags:
        if tag.startswith(_DATA_SET) and len(tag) > len(_DATA_SET):
            return tag.removeprefix(_DATA_SET)
    named = reader.config.get("dataset")
    return named if isinstance(named, str) else ""


def tuner_name(reader: ExperimentReader) -> str:
    """Return the name of an experiment's tuner, or of its class; empty if its file is gone."""
    tuner = reader.config.get("tuner")
    if not isinstance(tuner, dict):
        return ""
    named = tuner.get("name") or tuner.get("className")
    return named if isinstance(named, str) else ""
