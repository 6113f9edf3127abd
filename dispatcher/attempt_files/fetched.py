"""The record of the files fetched of an attempt, in the folder they were fetched to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from trial_runtime import durable_file

#: Its name; no file of an attempt may be called so.
NAME = ".fetched.json"

_MOST_BYTES = 64 << 20


@dataclass
class Fetched:
    """The files fetched of one attempt.

    Attributes:
        attempt: ``3.1``.
        place: the machine and folder they were fetched from.
        kinds: all files of these kinds were fetched, after the attempt's end.
        files: path → version there.
        left: path → why it was not fetched.
    """

    attempt: str
    place: str = ""
    kinds: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path, attempt: str) -> Fetched:
        """Read the record of a folder; an empty one if there is none, or another attempt's."""
        try:
            with (folder / NAME).open("rb") as file:
                record = json.loads(file.read(_MOST_BYTES))
            fetched = cls(**record)
            if fetched.attempt == attempt and isinstance(fetched.files, dict):
                return fetched
        except (OSError, ValueError, TypeError):
            pass
        return cls(attempt)

    def write(self, folder: Path) -> None:
        """Replace the record, all at once. Raises ``OSError``."""
        text = json.dumps(asdict(self))
        durable_file.replace(folder / NAME, text.encode(), mode=None, durable=False)
