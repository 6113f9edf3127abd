"""Secrets by reference: looked up each time that they are needed, since files rotate; the address
of a service, with the authority that a section names for it; and files at signed addresses."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.references import FILE, resolve_reference
from dispatcher.http_services.client import HttpAddress, HttpClient
from dispatcher.http_services.credentials import Proof, bearer
from dispatcher.http_services.errors import NotLoggedIn, Unreachable
from dispatcher.platforms.http_jobs.section import HttpJobsService


def address_of(section: HttpJobsService, server: str, extra: str = "http") -> HttpAddress:
    """The address of a section's service. Reads a file.

    Args:
        section: of the service.
        server: ``https://HOST`` and perhaps a path.
        extra: the one of ours that has what it needs, for people.

    Raises:
        PermanentBackendError: the file with its authority cannot be read.
    """
    try:
        authorities = section.authorities()
    except OSError as error:
        text = f"'caFile' cannot be read: {error.strerror}"
        raise PermanentBackendError(text, where=str(section.ca_file)) from error
    return HttpAddress(server, authorities, origin="'caFile'", extra=extra)


def named_at(section: HttpJobsService, url: str, by: str) -> HttpAddress:
    """The address of another service, which an answer names.

    Args:
        section: of the service that was asked.
        url: of the other one; its path does not count.
        by: the address of the service that names it. Where that is asked by https, nobody is named
            to whom a token, or a signature, would go in clear.

    Raises:
        Unreachable: it is no such address.
    """
    try:
        scheme, host = urlsplit(url)[:2]
    except ValueError:
        scheme, host = "", ""
    if not host or "@" in host or scheme not in ("https", urlsplit(by).scheme):
        where = urlsplit(by).netloc
        raise Unreachable("it names no address of another service by https", where=where)
    return address_of(section, f"{scheme}://{host}")


def text_at(section: HttpJobsService, url: str, by: str, *, asked: str) -> str:
    """The text of a file at an address that is signed itself, of another service: our own token
    does not go there, and the address is in no error.

    Args:
        section: of the service that has named it.
        url: whole.
        by: the address of that service.
        asked: what is asked, for people.

    Raises:
        BackendError: it cannot be had.
    """
    client = HttpClient(named_at(section, url, by))
    try:
        return str(client.ask("GET", url, asked=asked, accept="text/plain").document)
    finally:
        client.close()


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
