"""Laying an experiment down: its folder, its resolved file, the first row of its journal."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from dispatcher.core import events as e
from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.dialects import first_dialect
from dispatcher.experiment.references import files_referred_to
from dispatcher.experiment.snapshot import to_json, to_shared
from dispatcher.experiments.brought_files import write_files
from dispatcher.experiments.known_folders import with_default_folder
from dispatcher.folders.experiment_folder import ExperimentFolder, new_id
from dispatcher.ports import JournalEntry
from dispatcher.store.journal import SqliteJournal
from dispatcher.wiring.nesting import refuse_nested
from dispatcher.wiring.remote_roots import try_root
from dispatcher.wiring.settings import settings_of
from dispatcher.wiring.weights import weights_root
from trial_runtime.failpoints import failpoint


def create(
    config: ExperimentConfig,
    ident: str | None = None,
    files: Mapping[str, str | bytes] | None = None,
    *,
    exist_ok: bool = False,
) -> Path:
    """Make the experiment's folder and the first row of its journal; return the folder.

    Args:
        config: the experiment.
        ident: its id, of :func:`dispatcher.folders.experiment_folder.new_id`, if the caller has
            made one; None: a new one.
        files: texts of code and contents of data that lie nowhere else, by their paths below the
            folder. ``config`` names them there, for which the caller has to have made the id.
        exist_ok: take a folder that is there: empty, or left by a process that died in here.

    Raises:
        BackendError: the folder cannot be made or filled, or lies where a journal is not safe; the
            weights root is a store that refuses.
        UserError: the weights root cannot be used from here, or no experiment may begin in
            this process.
    """
    refuse_nested()
    if config.seed is None:
        config = config.model_copy(update={"seed": secrets.randbelow(1 << 31)})
    config = with_default_folder(config)
    try_root(config)
    ident = ident or new_id(config.experiment_name)
    folder = ExperimentFolder.make(
        config.experiment_working_directory, ident, config.share_with, exist_ok=exist_ok
    )
    _write(files or {}, folder.path)
    if config.use_annotation or any(service.code_snapshot for service in config.services):
        config = _with_code_snapshot(config, folder)
    failpoint("create.folder.made")
    _lay_down(config, folder)
    journal = SqliteJournal.open(folder.journal)
    try:
        journal.set_meta("experiment", folder.id)
        failpoint("create.journal.made")
        journal.append(
            [JournalEntry(time.time(), e.ExperimentCreated(settings_of(config)))], (), durable=True
        )
        folder.share(config.share_with)
    finally:
        journal.close()
    failpoint("create.experiment.journalled")
    return folder.path


def _lay_down(config: ExperimentConfig, folder: ExperimentFolder) -> None:
    try:
        folder.write_config(to_json(config), to_shared(config))
        failpoint("create.config.written")
        weights_root(config, folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PermanentBackendError(
            f"the experiment cannot be laid down: {error.strerror or error}",
            hint="see that there is space, and that you may write there; then create it again",
            where=str(error.filename or folder.path),
        ) from error


def _write(files: Mapping[str, str | bytes], folder: Path) -> None:
    try:
        write_files(files, folder)
    except OSError as error:
        raise PermanentBackendError(
            f"cannot write the code: {error.strerror or error}", where=str(folder)
        ) from error


def _with_code_snapshot(config: ExperimentConfig, folder: ExperimentFolder) -> ExperimentConfig:
    """Copy the code directory into the experiment, and let trials run from there."""
    from dispatcher.experiment.code_folder import copy_code

    try:
        # What references name is looked up where it lies; a copy would be sent with the code.
        left_out = (folder.path.parent, *files_referred_to(config.model_dump()))
        copy_code(config.trial_code_directory, folder.code, left_out)
        if config.use_annotation:
            first_dialect("annotated code").rewrite_annotated(folder.code)
    except OSError as error:
        raise PermanentBackendError(
            f"cannot copy the code directory: {error.strerror or error}", where=str(folder.code)
        ) from error
    return config.model_copy(update={"trial_code_directory": folder.code})
