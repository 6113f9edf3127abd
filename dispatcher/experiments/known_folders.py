"""The folders of this user's experiments, which ``experimentWorkingDirectory`` has named.

A file of one path a line in the user's state folder. It is a help, not a truth: a folder
that is gone is passed over, a file that is lost costs only the search.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from dispatcher.queries.experiments import HOME_VARIABLE, base_folder
from trial_runtime import durable_file

if TYPE_CHECKING:
    from dispatcher.experiment.config import ExperimentConfig

_MOST = 100  # beyond that the oldest are forgotten


def default_folder() -> Path:
    """Return the folder for files that name none: BEQUEATH_HOME, or the key's default. A command
    that only reads asks for it: the configuration is not imported for that."""
    return base_folder().absolute()


def own_home() -> Path | None:
    """Return the folder that BEQUEATH_HOME names, outside of which no experiment is meant unless
    it is named. None if it is not set."""
    return default_folder() if os.environ.get(HOME_VARIABLE) else None


def with_default_folder(config: ExperimentConfig) -> ExperimentConfig:
    """Return the configuration with :func:`default_folder` filled in, if it names no folder."""
    if "experiment_working_directory" in config.model_fields_set:
        return config
    return config.model_copy(update={"experiment_working_directory": default_folder()})


def known_folders() -> list[Path]:
    """List folders that exist and may hold experiments, the newest first, the default one last."""
    found = dict.fromkeys([*reversed(_remembered()), default_folder()])
    return [folder for folder in found if folder.is_dir()]


def remember(folder: Path) -> None:
    """Remember a folder. An error here must not stop an experiment."""
    text = str(folder.resolve())
    known = [str(path) for path in _remembered()]
    if text in known[-1:] or "\n" in text:
        return
    lines = [line for line in known if line != text] + [text]
    path = _file()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in lines[-_MOST:])
        durable_file.replace(path, text.encode(errors="surrogateescape"), mode=None, durable=False)


def _remembered() -> list[Path]:
    try:
        lines = _file().read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [Path(line) for line in lines if line]


def _file() -> Path:
    return Path(platformdirs.user_state_dir("bequeath")) / "folders"
