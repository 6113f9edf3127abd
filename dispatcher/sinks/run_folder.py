"""The key ``folder`` of sinks that write files."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Final

from dispatcher.sinks.protocol import ExperimentRun

#: What else lies in an experiment's folder.
_TAKEN: Final = frozenset({"code", "keys", "logs", "reports", "sinks", "trials", "weights"})


def check_folder(text: str) -> str:
    """Return a folder as it is kept: absolute, or within the experiment's own.

    Raises:
        ValueError: it is neither.
    """
    if "\0" in text:
        raise ValueError("holds a NUL character, which no path can")
    path = PurePath(os.path.expanduser(text))
    if path.is_absolute():
        return str(path)
    if ".." in path.parts or not path.parts:
        raise ValueError(
            f"must lie in the experiment's folder, or be an absolute path, not {text!r}"
        )
    if path.parts[0] in _TAKEN:
        raise ValueError(f"is a folder of the experiment's own: {path.parts[0]!r}")
    return str(path)


def folder_of(text: str, experiment: ExperimentRun) -> Path:
    """Return the folder of one experiment's runs."""
    folder = Path(text)
    return folder / experiment.id if folder.is_absolute() else experiment.folder / folder
