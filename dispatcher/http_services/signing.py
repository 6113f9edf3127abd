"""Signatures of requests: the headers by which a service knows who asks.

A token is a header that is the same for each request; other services want a digest over all of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from dispatcher.http_services.credentials import Credentials, Fixed


class HttpRequest(NamedTuple):
    """A request before it is signed.

    Attributes:
        method: of HTTP.
        url: whole, with its query.
        headers: as they are sent.
        body: empty for none.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class Signer(Protocol):
    """The way to have a request signed. Threads: any."""

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        """Return the headers that say who asks. May block, and raise ``BackendError``."""
        ...

    def refused(self) -> bool:
        """Note that the service knows nobody by the newest signature; whether another one may be
        had at once."""
        ...


@dataclass(frozen=True)
class TokenSigner:
    """Signs by a token, such as ``Bearer …``.

    Args:
        credentials: have the token.
    """

    credentials: Credentials = field(default=Fixed(), repr=False)

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        """See :class:`Signer`."""
        authorization = self.credentials.proof().authorization
        return {"Authorization": authorization} if authorization else {}

    def refused(self) -> bool:
        """See :class:`Signer`."""
        return self.credentials.refused()
