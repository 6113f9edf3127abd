"""A machine of the experiment file, and how to log in there."""

from __future__ import annotations

from functools import partial

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.references import resolve_reference
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.platforms.ssh.section import LoginConfig, MachineConfig
from dispatcher.ssh import SshTarget


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


def label_of(login: LoginConfig) -> str:
    """The address of a machine, for people; no secret is looked up."""
    return SshTarget(login.host, login.port or 0, login.user or "").label


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


def _secret(reference: str | None) -> str:
    if reference is None:
        return ""
    try:
        return resolve_reference(reference)
    except ValueError as error:
        raise PermanentBackendError(f"a password {error}") from error
