"""Secrets by reference: looked up each time that they are needed, since files rotate."""

from __future__ import annotations

from dataclasses import dataclass

from dispatcher.experiment.references import FILE, resolve_reference
from dispatcher.http_services.credentials import Proof, bearer
from dispatcher.http_services.errors import NotLoggedIn


def secret_of(reference: str) -> str:
    """The secret that a reference leads to. Reads a variable or a file.

    Raises:
        NotLoggedIn: it leads nowhere.
    """
    try:
        return resolve_reference(reference).strip()
    except ValueError as error:
        raise NotLoggedIn(f"the reference {reference!r} {error}") from error


@dataclass(frozen=True)
class ReferredToken:
    """A token that a reference leads to, see
    :class:`~dispatcher.http_services.credentials.Credentials`.

    Attributes:
        reference: ``env:NAME`` or ``file:PATH``.
    """

    reference: str

    def proof(self) -> Proof:
        """See :class:`Credentials`. Raises ``NotLoggedIn``."""
        return Proof(bearer(secret_of(self.reference), self.reference))

    def refused(self) -> bool:
        """See :class:`Credentials`: a file may have been renewed a moment ago."""
        return self.reference.startswith(FILE)
