"""Signatures of requests to the API gateway of NAVER Cloud, version 2."""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from dispatcher.http_services.signing import HttpRequest

Secret = Callable[[], str]
"""Looks a secret up; may raise ``BackendError``."""


@dataclass
class GatewaySigner:
    """Signs a request by a digest over its method, its address and the time, see
    :class:`~dispatcher.http_services.signing.Signer`.

    Attributes:
        access_key: of the account.
        secret_key: of the account; it is not sent.
        api_key: of the service, as its console shows it.
        now: seconds since the epoch. The gateway takes five minutes of difference, so it is to be
            its own clock, once an answer has said what that is.
    """

    access_key: Secret = field(repr=False)
    secret_key: Secret = field(repr=False)
    api_key: Secret = field(repr=False)
    now: Callable[[], float] = time.time

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        """See :class:`Signer`."""
        access, stamp = self.access_key(), str(int(self.now() * 1000))
        return {
            "x-ncp-apigw-timestamp": stamp,
            "x-ncp-iam-access-key": access,
            "x-ncp-apigw-signature-v2": signature_of(
                request.method, request.url, stamp, access, self.secret_key()
            ),
            "x-ncp-apigw-api-key": self.api_key(),
        }

    def refused(self) -> bool:
        """See :class:`Signer`: the time is known now, and a file may have been renewed."""
        return True


def signature_of(method: str, url: str, stamp: str, access_key: str, secret_key: str) -> str:
    """The signature of a request. Pure.

    Args:
        method: of HTTP.
        url: whole, with its query.
        stamp: milliseconds since the epoch.
        access_key: of the account.
        secret_key: of the account.
    """
    split = urlsplit(url)
    target = f"{split.path}?{split.query}" if split.query else split.path
    text = f"{method} {target}\n{stamp}\n{access_key}"
    digest = hmac.new(secret_key.encode(), text.encode(), hashlib.sha256).digest()
    return b64encode(digest).decode()
