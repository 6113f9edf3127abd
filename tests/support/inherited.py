"""Promise 7, of files: what a child has loaded is what the head committed."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.reading import Reading
from tests.support.witnesses import Witnesses


def children_load_what_was_committed(
    reading: Reading, seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """Each tensor that a child has loaded is of one save of the attempt whose digest the journal
    has, but for those that this attempt had inherited itself."""
    owners = {t.save: t for t in reading.started if t.save is not None}
    for load in seen.loads or ():
        parent = owners.get(load.path)
        if parent is None:
            continue  # submitted by hand
        committed = {
            (parent.number, attempt.number)
            for attempt in parent.attempts.values()
            for told in (*(each for _, _, each in attempt.published), attempt.files)
            if told is not None and told.digest == load.digest
        }
        name = f"{load.trial}.{load.attempt}"
        own = {mark for tensor, mark in load.tensors.items() if tensor != "base"}
        if len(own) > 1:
            yield f"{name} has loaded a parent of several saves: {load.tensors} (promise 7)"
        stale = [mark.text for mark in sorted(own) if (mark.trial, mark.attempt) not in committed]
        if stale:
            yield f"{name} has loaded {stale}, and {sorted(committed)} were committed (promise 7)"
