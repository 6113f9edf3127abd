"""How far the fetching of files from a worker has come, kept for the next head and for readers."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path

_MOST_BYTES = 64 << 20


@dataclass
class Gathered:
    """Of one worker. All attempts of trials below ``below`` were dealt with, and those of
    ``done`` (``12.1``); ``kinds`` says what is fetched."""

    kinds: list[str]
    below: int = 0
    done: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, folder: Path, worker: str, kinds: Collection[str] | None = None) -> Gathered:
        """What is on record; nothing, if other kinds were fetched than are wanted now."""
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
        """Everything of the trials below is done."""
        if below > self.below:
            self.below = below
            self.done = {each for each in self.done if int(each.partition(".")[0]) >= below}

    def write(self, folder: Path, worker: str) -> None:
        """Replace the record, all at once. Raises ``OSError``."""
        path = path_of(folder, worker)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            draft.write_text(json.dumps({**asdict(self), "done": sorted(self.done)}))
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise


def path_of(folder: Path, worker: str) -> Path:
    """Where it lies in the experiment's folder."""
    return folder / f"fetched-{worker}.json"
