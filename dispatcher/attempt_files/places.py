"""The place of an attempt's files by the experiment file: its platform shows them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from dispatcher.attempt_files.attempt_at import AttemptAt
from dispatcher.attempt_files.by_head import FilesByHead
from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.plugged import word_of
from dispatcher.experiment.service import LOCAL
from dispatcher.experiment.snapshot import from_json
from dispatcher.folders.experiment_folder import ExperimentFolder, run_folder
from dispatcher.folders.ownership import demand_ours
from dispatcher.platforms.given import Given
from dispatcher.platforms.registry import platform_of
from dispatcher.platforms.worker_files import AttemptShell, WorkerFiles
from dispatcher.ports import AttemptFiles
from dispatcher.wiring.agents import worker_config
from dispatcher.wiring.archives import packer
from dispatcher.wiring.places import Place, places
from trial_runtime.endpoint import Endpoint


class ShowsNoFiles(PermanentBackendError):
    """Raised for a platform that does not show files."""


def files_of(folder: ExperimentFolder, attempt: AttemptAt) -> AttemptFiles:
    """See :func:`dispatcher.attempt_files.ways.files_of`."""
    config = from_json(folder.read_config(), str(folder.config))
    place = place_of(config, attempt)
    files = PlaceFiles(config, folder, place)
    try:
        return files.of(attempt)
    except ShowsNoFiles:
        if not platform_of(place.service).has_agent:
            raise
    return FilesByHead(folder, attempt, word_of(place.service), partial(files.shell, attempt))


class PlaceFiles:
    """The files of all attempts of one worker; its machine is logged in to once. Thread: one.

    Raises:
        NotOurs: the experiment is somebody else's, and its file would choose where our keys are
            tried. Files on this machine are for all who may read them.
    """

    def __init__(self, config: ExperimentConfig, folder: ExperimentFolder, place: Place) -> None:
        if place.worker != LOCAL:
            demand_ours(folder.path)
        self._config = config
        self._folder = folder
        self._place = place
        self._files: WorkerFiles | None = None

    def of(self, attempt: AttemptAt) -> AttemptFiles:
        """Return the files of one attempt. Raises as :func:`files_of` does."""
        if self._files is None:
            self._files = platform_of(self._place.service).worker_files(self._given())
        files = self._files.of(attempt.trial, attempt.number, pid=attempt.pid)
        if files is None:
            raise ShowsNoFiles(
                f"the platform {word_of(self._place.service)!r} shows no files of what runs there",
                hint="its own tools may",
                where=self._place.worker,
            )
        return files

    def shell(self, attempt: AttemptAt) -> AttemptShell | None:
        """Return a shell beside one attempt, where its files are not shown; None if there is none.
        Raises ``BackendError``."""
        platform = platform_of(self._place.service)
        return platform.shell(self._given(), attempt.trial, attempt.number, pid=attempt.pid)

    def close(self) -> None:
        """Log out; the next question logs in again."""
        if self._files is not None:
            self._files.close()

    def _given(self) -> Given[Any]:
        """Make what the platform gets, without a head to reach."""
        config, folder, place = self._config, self._folder, self._place
        sockets = Path() if place.worker == LOCAL else run_folder(folder.path)
        return Given(
            place.worker,
            place.service,
            place.part,
            worker_config(config, place, folder, Endpoint(""), 0, sockets),
            folder.path,
            None,
            packer(config, folder),
            lambda: "",
            known=True,
        )


def place_of(config: ExperimentConfig, attempt: AttemptAt) -> Place:
    """Find the place of an attempt's worker. Raises ``PermanentBackendError``."""
    for place in places(config):
        if place.worker == (attempt.worker or LOCAL):
            return place
    raise PermanentBackendError(
        f"attempt {attempt.name} ran on {attempt.worker}, which the experiment does not name",
        hint="what was fetched of it is in the experiment's folder",
    )
