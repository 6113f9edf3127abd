"""Translates the experiment file into machines; decides nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dispatcher.backends.ssh import Archives, pack_all
from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.fields import Section
from dispatcher.experiment.planned import LOCAL as LOCAL
from dispatcher.experiment.references import files_referred_to, secret_values
from dispatcher.experiment.services import Service
from dispatcher.experiment.ssh_service import MachineConfig
from dispatcher.folders import ExperimentFolder


class Place(NamedTuple):
    """A worker's name and its sections of the file; ``machine`` is that of ``platform: ssh``, and
    None otherwise. ``part`` is the section of this worker alone."""

    worker: str
    service: Service
    machine: MachineConfig | None
    slots: int
    part: Section


def places(config: ExperimentConfig) -> list[Place]:
    """The places where trials run: the same file always gives the same names."""
    return [
        Place(
            worker.name,
            service,
            worker.part if isinstance(worker.part, MachineConfig) else None,
            worker.slots,
            worker.part,
        )
        for service, worker in config.workers
    ]


def secrets_of_machines(config: ExperimentConfig) -> list[str]:
    """The values of references in the sections of machines, to be kept out of logs; references that
    lead nowhere are passed over. Reads files."""
    values: list[str] = []
    for place in places(config):
        if place.machine is None:
            continue
        values += secret_values(place.machine.environment, os.environ)
        for login in (place.machine, place.machine.jump):
            if login is not None:
                named = {"password": login.password, "passphrase": login.passphrase}
                values += secret_values({k: v for k, v in named.items() if v}, os.environ)
    return values


def packer(config: ExperimentConfig, folder: ExperimentFolder) -> Callable[[], Archives]:
    """A function that packs the archives of machines at its first call, from any thread."""
    lock = threading.Lock()
    packed: list[Archives] = []
    ours = (config.experiment_working_directory, config.weights_root)
    limits = config.limits

    def ask() -> Archives:
        with lock:
            if not packed:
                try:
                    archives = pack_all(
                        config.trial_code_directory,
                        folder.path / "archives",
                        excluded=[path for path in ours if isinstance(path, Path)],
                        most_files=limits.max_code_files,
                        most_bytes=limits.max_code_size,
                        secrets=files_referred_to(config.model_dump()),
                    )
                except OSError as error:
                    raise PermanentBackendError(
                        f"the code cannot be packed: {error.strerror}", where=str(folder.path)
                    ) from error
                packed.append(archives)
            return packed[0]

    return ask
