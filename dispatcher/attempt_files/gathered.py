"""The record of how far fetching from a worker has come, for the next head and for readers."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path

from trial_runtime import durable_file

_MOST_BYTES = 64 << 20


@dataclass
class Gathered:
    """The attempts of one worker that were dealt with: all of trials below ``below``, and those in
    ``done`` (``12.1``); ``kinds`` are the kinds of files that are fetched."""

    kinds: list[str]
    below: int = 0
    done: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, folder: Path, worker: str, kinds: Collection[str] | None = None) -> Gathered:
        """Read the record; an empty one if other kinds were fetched than are wanted now.

        Args:
            folder: the experiment's.
            worker: the worker's name.
            kinds: that are wanted now; None takes any record.
        """
        try:
            with path_of(folder, worker).open("rb") as file:
                record = json.loads(file.read(_MOST_BYTES))
            gathered = cls(list(record["kinds"]), int(record["below"]), set(record["done"]))
            if kinds is None or set(kinds) == set(gathered.kinds):
                return gathered
        except (OSError, ValueError, TypeError, KeyError):
            pass
        return cls(sorted(kinds or ()))

    def has(self, trial: int, attempt: int) -> bool:
        """Whether an attempt was dealt with."""
        return trial < self.below or f"{trial}.{attempt}" in self.done

    def rise(self, below: int) -> None:
        """Note that everything of the trials below is done."""
        if below > self.below:
            self.below = below
            self.done = {each for each in self.done if int(each.partition(".")[0]) >= below}

    def write(self, folder: Path, worker: str) -> None:
        """Replace the record, all at once. Raises ``OSError``."""
        text = json.dumps({**asdict(self), "done": sorted(self.done)})
        durable_file.replace(path_of(folder, worker), text.encode(), mode=None, durable=False)


def path_of(folder: Path, worker: str) -> Path:
    """Return the path of the record in the experiment's folder."""
    return folder / f"fetched-{worker}.json"
