"""An inventory file, read as YAML and checked; every error with its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dispatcher.errors import UserError

if TYPE_CHECKING:
    from nfs_setup.cluster.members import Inventory


class InventoryErrors(UserError):
    """Raised with everything that is wrong with an inventory file, in ``errors``."""

    def __init__(self, errors: list[UserError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = tuple(errors)


def read_inventory(file: Path) -> Inventory:
    """Read and check an inventory file.

    Raises:
        UserError: if it cannot be read, is no YAML, or says something wrong.
    """
    from dispatcher.experiment.source import read_source
    from nfs_setup.cluster.inventory import inventory_of
    from nfs_setup.cluster.reading import InventoryRefused, KeyPath

    source = read_source(_text(file), str(file))

    def places(path: KeyPath, key: bool) -> str:
        return source.where(path, key=key)

    try:
        return inventory_of(source.value, places)
    except InventoryRefused as refused:
        raise InventoryErrors(
            [UserError(e.message, hint=e.hint, where=e.where) for e in refused.errors]
        ) from None


def _text(file: Path) -> str:
    try:
        return file.expanduser().read_bytes().decode("utf-8-sig")
    except OSError as error:
        text = error.strerror or str(error)
        raise UserError(f"the inventory cannot be read: {text}", where=str(file)) from error
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 text, see byte {error.start}", where=str(file)) from None
