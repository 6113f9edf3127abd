"""Commands with those that take them back; and checks of what the steps before have done."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host
from nfs_setup.ledger import Ledger
from nfs_setup.step import Change, KnownBefore

_COMMAND_S = 60.0


@dataclass(frozen=True)
class Commands(KnownBefore):
    """Commands that bring something about, and those that take it back, in their order."""

    title: str
    needed: Callable[[Host], bool]
    do: tuple[tuple[str, ...], ...]
    back: tuple[tuple[str, ...], ...] = ()
    shared: bool = False
    kind: str = "command"

    def change(self, host: Host) -> Change | None:
        """Return the commands, if they are needed."""
        if not self.needed(host):
            return None
        return Change(self.title, "".join(f"$ {shlex.join(command)}\n" for command in self.do))

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Return the commands that take them back."""
        return {"back": [list(command) for command in self.back]}

    def apply(self, host: Host) -> None:
        """Run the commands, one after the other."""
        for command in self.do:
            ran = host.run(command, limit_s=_COMMAND_S)
            if not ran.ok:
                raise MachineRefuses(ran.message, where=" ".join(command))


def undo_command(host: Host, ledger: Ledger, data: dict[str, Any]) -> str:
    """See :class:`nfs_setup.step.Undo`. Runs the commands that take it back."""
    for command in data["back"]:
        ran = host.run(command, limit_s=_COMMAND_S)
        if not ran.ok and ran.code != 127:
            raise MachineRefuses(ran.message, where=" ".join(command))
    return ""


@dataclass(frozen=True)
class Check(KnownBefore):
    """A look at what the steps before have done; if it fails, they are taken back. ``look`` returns
    what is wrong, or an empty text."""

    title: str
    look: Callable[[Host], str]
    hint: str = ""
    shared: bool = False
    kind: str = "command"

    def change(self, host: Host) -> Change | None:
        """Return the check; None if all is well already."""
        return Change(f"check: {self.title}") if self.look(host) else None

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Return no commands: there is nothing to take back."""
        return {"back": []}

    def apply(self, host: Host) -> None:
        """Look again.

        Raises:
            MachineRefuses: with what is wrong.
        """
        wrong = self.look(host)
        if wrong:
            raise MachineRefuses(wrong, where=self.title, hint=self.hint)
