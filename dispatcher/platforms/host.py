"""A machine that commands of ours can visit without a trial there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dispatcher.findings import Finding
    from dispatcher.remote_python.findings import HostNeeds
    from dispatcher.remote_python.leftovers import Left


class ReachableHost(Protocol):
    """One machine, as ``hosts check`` and ``hosts tidy`` visit it. All methods but the names block.

    Attributes:
        name: that of its worker.
        label: its address, for people.
    """

    name: str
    label: str

    def check(self, needs: HostNeeds) -> list[Finding]:
        """Look whether trials can run there; what cannot be looked at is a finding, too.

        What its own section says (its Python, its folders) is put in the place of that of
        ``needs``.
        """
        ...

    def leftovers(self) -> dict[str, Left]:
        """Return the folders that experiments have left there, by ``ID/WORKER``. Raises
        ``BackendError``."""
        ...

    def remove(self, names: Sequence[str]) -> list[str]:
        """Remove folders, but for those in use by now; returns the names of those that are gone.
        Raises ``BackendError``."""
        ...
