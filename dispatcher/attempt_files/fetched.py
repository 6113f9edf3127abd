"""The record of the files fetched of an attempt, in the folder they were fetched to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dispatcher.attempt_files.attempt_at import AttemptAt, kept_here
from dispatcher.folders.experiment_folder import ExperimentFolder
from trial_runtime import durable_file

#: Its name; no file of an attempt may be called so.
NAME = ".fetched.json"

#: The kind of files that an attempt prints.
LOGS = "logs"

_MOST_BYTES = 64 << 20


@dataclass
class Fetched:
    """The files fetched of one attempt.

    Attributes:
        attempt: ``3.1``.
        place: the machine and folder they were fetched from.
        kinds: all files of these kinds were fetched, after the attempt's end.
        files: path → version there.
        left: path → why it was not fetched, or not all of it.
        begins: path → byte of that file with which the one here begins, if not with the first.
    """

    attempt: str
    place: str = ""
    kinds: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)

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


def logs_are_kept(folder: ExperimentFolder, attempt: AttemptAt) -> bool:
    """Whether the logs of an attempt are here as far as they will ever be: fetched after its end,
    or handed in with it.

    Args:
        folder: the experiment's.
        attempt: the attempt.
    """
    return LOGS in Fetched.read(kept_here(folder, attempt), attempt.name).kinds
