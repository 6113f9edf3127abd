"""Steps: each a change that can be shown, made, and taken back from what was noted of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from nfs_setup.host import Host
from nfs_setup.ledger import Ledger


@dataclass(frozen=True)
class Change:
    """Effect of a step here and now: a sentence, and the diff or the command."""

    text: str
    detail: str = ""


class Step(Protocol):
    """One change of the machine. Made by a verb, carried out by :mod:`nfs_setup.transaction`."""

    @property
    def kind(self) -> str:
        """The name it is undone by, see :mod:`nfs_setup.transaction`."""

    @property
    def shared(self) -> bool:
        """Whether other runs of the verb count on it, too."""

    @property
    def title(self) -> str:
        """The subject, for the line that reports it as there already."""

    def change(self, host: Host) -> Change | None:
        """Return the change it would make; None if everything is so already. Changes nothing.

        Raises:
            SetupError: if it cannot be done.
        """

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Return all that undoing needs, as plain data; it is kept before the change is made."""

    def apply(self, host: Host) -> None:
        """Make the change.

        Raises:
            SetupError: if it fails; what is half done is undone from :meth:`before`.
        """

    def after(self, host: Host, data: dict[str, Any]) -> None:
        """Add to the data of :meth:`before` what could be known only now."""


class Undo(Protocol):
    """Takes a step back by what was noted of it. The step may be half done, or gone already."""

    def __call__(self, host: Host, ledger: Ledger, data: dict[str, Any], /) -> str:
        """Put things back as they were.

        Args:
            host: the machine.
            ledger: keeps contents that were replaced.
            data: as the step's :meth:`Step.before` and :meth:`Step.after` noted it.

        Returns:
            Why something of it was kept on purpose; an empty text if nothing was.

        Raises:
            SetupError: if it cannot be undone.
            OSError: if the system refuses.
        """


class KnownBefore:
    """Base of steps of which all is known before they are made."""

    def after(self, host: Host, data: dict[str, Any]) -> None:
        """Add nothing."""
