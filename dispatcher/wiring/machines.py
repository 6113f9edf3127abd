"""Translates the experiment file into machines; decides nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dispatcher.backends.ssh import Archives, Machine, pack_all
from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.fields import Section
from dispatcher.experiment.planned import LOCAL as LOCAL
from dispatcher.experiment.references import files_referred_to, resolve_reference, secret_values
from dispatcher.experiment.services import Service
from dispatcher.experiment.ssh_service import LoginConfig, MachineConfig
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.ssh import SshTarget


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


def machine_of(worker: str, machine: MachineConfig) -> Machine:
    """A machine of the file as the backend knows it."""
    return Machine(
        name=worker,
        target=partial(target_of, machine),
        python=machine.python,
        prolog=machine.prolog or "",
        environment=dict(machine.environment),
        weights_root=machine.weights_root or "",
        read_roots=machine.weights_read_roots,
        work_folder=machine.work_folder,
        head_address=machine.head_address or "",
    )


def target_of(login: LoginConfig) -> SshTarget:
    """The target of a login, with secrets looked up now. Raises ``PermanentBackendError``."""
    jump = login.jump if isinstance(login, MachineConfig) else None
    return SshTarget(
        host=login.host,
        port=login.port or 0,
        user=login.user or "",
        key_file=login.key_file,
        password=_secret(login.password),
        passphrase=_secret(login.passphrase),
        known_hosts=login.known_hosts,
        jump=target_of(jump) if jump is not None else None,
    )


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


def _secret(reference: str | None) -> str:
    if reference is None:
        return ""
    try:
        return resolve_reference(reference)
    except ValueError as error:
        raise PermanentBackendError(f"a password {error}") from error
