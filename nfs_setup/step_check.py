"""A look at what the steps before have brought about; if it fails, they are taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host
from nfs_setup.ledger import Ledger
from nfs_setup.step import Change


@dataclass(frozen=True)
class Check:
    """``look`` returns what is wrong, or an empty text."""

    title: str
    look: Callable[[Host], str]
    hint: str = ""
    shared: bool = False
    kind: str = "command"

    def change(self, host: Host) -> Change | None:
        """None if all is well already."""
        return Change(f"check: {self.title}") if self.look(host) else None

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Nothing to take back."""
        return {"back": []}

    def apply(self, host: Host) -> None:
        """Look again.

        Raises:
            MachineRefuses: with what is wrong.
        """
        wrong = self.look(host)
        if wrong:
            raise MachineRefuses(wrong, where=self.title, hint=self.hint)

    def after(self, host: Host, data: dict[str, Any]) -> None:
        """Everything was known before."""
