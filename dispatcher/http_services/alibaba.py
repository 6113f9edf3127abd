"""Alibaba Cloud's services in what is not like most: keys, the signature ACS3-HMAC-SHA256 over a
whole request, and what their errors mean. No package of theirs is needed."""

from __future__ import annotations

import hmac
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Protocol
from urllib.parse import parse_qsl, quote, urlsplit

from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.http_services.client import HttpAddress, HttpClient
from dispatcher.http_services.errors import (
    Busy,
    Invalid,
    NotAllowed,
    NotLoggedIn,
    NotThere,
    OverQuota,
    code_in,
    error_of_answer,
    seconds_in,
)
from dispatcher.http_services.server_clock import ServerClock, moment_of
from dispatcher.http_services.signing import HttpRequest

ALGORITHM = "ACS3-HMAC-SHA256"

#: The header that has the digest of the body, and the beginning of those that are signed.
DIGEST, OWN = "x-acs-content-sha256", "x-acs-"

#: Further headers that are signed.
_SIGNED = ("host", "content-type")


@dataclass(frozen=True)
class AccessKey:
    """A key, of a user or for a while of a role.

    Attributes:
        id: names it; no secret.
        secret: signs.
        token: of the Security Token Service, for keys that end; empty: none.
    """

    id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


class KeySource(Protocol):
    """The way to have a key. Threads: any."""

    def key(self) -> AccessKey:
        """Return the one that is valid now. May block, and raise ``BackendError``."""
        ...

    def refused(self) -> None:
        """Note that a service does not take the newest one."""
        ...


class KeyFromUri:
    """A key that ends and is handed out anew at an address, as the vendor's tools have it. See
    :class:`KeySource`.

    Args:
        uri: the address.
        clock: seconds since the epoch.
    """

    #: So long before its end a key is fetched anew (seconds).
    EARLY_S = 180.0

    def __init__(self, uri: str, clock: Callable[[], float] = time.time) -> None:
        self._uri = uri
        self._clock = clock
        self._lock = threading.Lock()
        self._key: AccessKey | None = None
        self._until: float | None = None

    def key(self) -> AccessKey:
        """See :class:`KeySource`. Raises ``NotLoggedIn``, and ``PassingBackendError`` where nobody
        answers there."""
        with self._lock:
            is_over = self._until is not None and self._clock() >= self._until - self.EARLY_S
            if self._key is None or is_over:
                self._key, self._until = self._fetched()
            return self._key

    def refused(self) -> None:
        """See :class:`KeySource`: the next one is fetched."""
        with self._lock:
            self._key = None

    def _fetched(self) -> tuple[AccessKey, float | None]:
        client = HttpClient(HttpAddress(self._uri))
        try:
            fields = client.ask("GET", "", asked="fetch a key").fields
        except PermanentBackendError as error:  # "not found" would be about a job elsewhere
            raise NotLoggedIn(error.message, hint=error.hint, where=client.where) from error
        finally:
            client.close()
        id_, secret = fields.get("AccessKeyId"), fields.get("AccessKeySecret")
        if not (id_ and secret):
            text = f"hands out no key: its 'Code' is {str(fields.get('Code'))[:80]!r}"
            raise NotLoggedIn(text, where=client.where)  # the whole address may have a login
        token = str(fields.get("SecurityToken") or "")
        return AccessKey(str(id_), str(secret), token), moment_of(fields.get("Expiration"))


#: Variables of the vendor's tools.
ID, SECRET, TOKEN, URI = (
    f"ALIBABA_CLOUD_{word}"
    for word in ("ACCESS_KEY_ID", "ACCESS_KEY_SECRET", "SECURITY_TOKEN", "CREDENTIALS_URI")
)


@dataclass(frozen=True)
class KeyByReference:
    """A key that references lead to, looked up for each request. See :class:`KeySource`.

    Attributes:
        read: returns what a reference leads to; raises ``NotLoggedIn``.
        id: a reference; so are the others, of which the token's may be empty.
        secret: of that id.
        token: of both.
    """

    read: Callable[[str], str]
    id: str
    secret: str
    token: str = ""

    def key(self) -> AccessKey:
        """See :class:`KeySource`. Raises ``NotLoggedIn``."""
        token = self.read(self.token) if self.token else ""
        return AccessKey(self.read(self.id), self.read(self.secret), token)

    def refused(self) -> None:
        """See :class:`KeySource`: it is looked up again at any rate."""


def key_of_variables(read: Callable[[str], str], variables: Mapping[str, str]) -> KeySource | None:
    """Return the way to the key that the vendor's variables name; None: they name none.

    Args:
        read: returns what a reference, such as ``env:NAME``, leads to.
        variables: those of this process.
    """
    if variables.get(ID):
        token = f"env:{TOKEN}" if variables.get(TOKEN) else ""
        return KeyByReference(read, f"env:{ID}", f"env:{SECRET}", token)
    return KeyFromUri(variables[URI]) if variables.get(URI) else None


class AcsSigner:
    """Signs each request by a digest over it, see
    :class:`~dispatcher.http_services.signing.Signer`. The name and the version of what is asked are
    headers of the request. Threads: any.

    Args:
        keys: have the key.
        nonce: returns a text that no request has had.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        keys: KeySource,
        nonce: Callable[[], str] = lambda: uuid.uuid4().hex,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._nonce = nonce
        self._now = clock

    def follow(self, times: ServerClock) -> None:
        """Date requests by the service's clock: it refuses those that are a quarter of an hour
        off."""
        self._now = times.now

    def headers(self, request: HttpRequest) -> Mapping[str, str]:
        """See :class:`Signer`. Blocks where a key has to be fetched."""
        key, split = self._keys.key(), urlsplit(request.url)
        moment = datetime.fromtimestamp(self._now(), UTC)
        own = {
            "host": split.netloc,
            DIGEST: sha256(request.body).hexdigest(),
            "x-acs-date": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "x-acs-signature-nonce": self._nonce(),
        }
        if key.token:
            own |= {"x-acs-accesskey-id": key.id, "x-acs-security-token": key.token}
        given = {name.lower(): value for name, value in request.headers.items()}
        signed = {
            name: value
            for name, value in {**given, **own}.items()
            if name.startswith(OWN) or name in _SIGNED
        }
        own["Authorization"] = authorization(request.method, request.url, signed, key)
        return own

    def refused(self) -> bool:
        """See :class:`Signer`: the service has said what its clock is, and a key may have been
        renewed a moment ago."""
        self._keys.refused()
        return True


def authorization(method: str, url: str, headers: Mapping[str, str], key: AccessKey) -> str:
    """Return the header of that name for a request. Pure.

    Args:
        method: of HTTP.
        url: whole, with its query.
        headers: that are signed, by names in lower case; that of the body's digest is one.
        key: signs.
    """
    split, names = urlsplit(url), sorted(headers)
    pairs = parse_qsl(split.query, keep_blank_values=True)
    query = sorted(f"{quote(name, '~')}={quote(value, '~')}" for name, value in pairs)
    lines = [method, split.path or "/", "&".join(query)]
    lines += [f"{name}:{headers[name].strip()}" for name in names]
    lines += ["", ";".join(names), headers[DIGEST]]
    digest = sha256("\n".join(lines).encode()).hexdigest()
    signature = hmac.new(key.secret.encode(), f"{ALGORITHM}\n{digest}".encode(), sha256)
    signed = f"SignedHeaders={';'.join(names)},Signature={signature.hexdigest()}"
    return f"{ALGORITHM} Credential={key.id},{signed}"


#: Codes about the one who asks, whatever the status: an unknown key is "404".
_LOGIN = re.compile(r"access_?key|signature|security_?token|time_?stamp", re.IGNORECASE)
_CLOCK = re.compile(r"time_?stamp", re.IGNORECASE)
_RATE = re.compile(r"throttling|flow_?control", re.IGNORECASE)
_GONE = re.compile(r"not_?(found|exist)", re.IGNORECASE)
_ROOM = re.compile(r"quota|no_?stock|out_?of_?stock|insufficient|limit_?exceed", re.IGNORECASE)
_RIGHTS = re.compile(r"forbidden|no_?permission|unauthorized|access_?denied", re.IGNORECASE)


def error_of_alibaba(
    status: int, document: object, *, asked: str, where: str, retry_after: str | None = None
) -> BackendError:
    """See :func:`~dispatcher.http_services.errors.error_of_answer`, which goes by the status; here
    the code says what an error is: status and code belong together in no fixed way."""
    usual = error_of_answer(status, document, asked=asked, where=where, retry_after=retry_after)
    code = code_in(document)
    message = f"{usual.message} ({code})" if code else usual.message
    if _RATE.search(code):
        error = Busy(message, where=where)
        error.retry_after_s = seconds_in(retry_after)
        return error
    if isinstance(usual, Busy) or not 400 <= status < 500:
        return usual
    if _LOGIN.search(code) or status == 401:
        hint = "is the key right, whole and enabled? a key with a token ends after some hours"
        clock = "is the clock of this machine right?"
        return NotLoggedIn(message, hint=clock if _CLOCK.search(code) else hint, where=where)
    if _GONE.search(code) or isinstance(usual, NotThere):
        return NotThere(message, where=where)
    if _ROOM.search(code) or isinstance(usual, OverQuota):
        return OverQuota(message, where=where)
    if status == 403 or _RIGHTS.search(code):
        hint = "have an administrator of the workspace give you the right"
        return NotAllowed(message, hint=hint, where=where)
    return Invalid(message, where=where) if isinstance(usual, Invalid) else usual
