"""An inventory file, read as YAML and checked; every error with its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatcher.errors import SeveralErrors, UserError

if TYPE_CHECKING:
    from dispatcher.platforms.logins.section import LoginConfig
    from dispatcher.platforms.ssh.section import MachineConfig
    from nfs_setup.cluster.members import Inventory


class InventoryErrors(SeveralErrors, UserError):
    """Raised with all errors of an inventory file."""


def read_inventory(file: Path) -> Inventory:
    """Read and check an inventory file.

    Raises:
        UserError: if it cannot be read, is no YAML, or is not valid.
    """
    from dispatcher.experiment.yaml_text import read_source
    from nfs_setup.cluster.inventory import inventory_of
    from nfs_setup.cluster.reading import InventoryRefused, KeyPath

    source = read_source(_text(file), str(file))
    values = source.value
    if isinstance(values, dict) and isinstance(values.get("clients"), str):
        where = source.where(("clients",))
        values = values | {"clients": _machines(values["clients"], file, where)}

    def places(path: KeyPath, key: bool) -> str:
        return source.where(path, key=key)

    try:
        return inventory_of(values, places)
    except InventoryRefused as refused:
        raise InventoryErrors(
            [UserError(e.message, hint=e.hint, where=e.where) for e in refused.errors]
        ) from None


def _machines(experiment: str, file: Path, where: str) -> list[dict[str, Any]]:
    """Return the machines of an experiment file, as clients of an inventory."""
    from dispatcher.experiment import load_experiment
    from dispatcher.platforms.ssh.section import SshServiceConfig

    config = load_experiment(file.expanduser().parent / Path(experiment).expanduser())
    clients = [
        _client(machine)
        for service in config.services
        if isinstance(service, SshServiceConfig)
        for machine in service.machine_list
    ]
    if not clients:
        hint = "see trainingService.machineList there, or write a list of clients"
        raise UserError(f"{experiment} names no machines", hint=hint, where=where)
    return clients


def _client(machine: MachineConfig) -> dict[str, Any]:
    login = _login(machine) | {"python": machine.python}
    return login if machine.jump is None else login | {"jump": _login(machine.jump)}


def _login(login: LoginConfig) -> dict[str, Any]:
    settings = {
        "host": login.host,
        "port": login.port,
        "user": login.user,
        "keyFile": login.key_file,
        "passphrase": login.passphrase,
        "password": login.password,
        "knownHosts": login.known_hosts,
    }
    # Files are absolute by now.
    return {
        key: str(value) if isinstance(value, Path) else value
        for key, value in settings.items()
        if value is not None
    }


def _text(file: Path) -> str:
    try:
        return file.expanduser().read_bytes().decode("utf-8-sig")
    except OSError as error:
        text = error.strerror or str(error)
        raise UserError(f"the inventory cannot be read: {text}", where=str(file)) from error
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 text, see byte {error.start}", where=str(file)) from None
