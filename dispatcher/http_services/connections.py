"""Connections to one service: TLS with its own authority and name, proxies, keep-alive."""

from __future__ import annotations

import logging
import socket
import ssl
import tempfile
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.credentials import Certificate
from dispatcher.http_services.errors import NotLoggedIn

if TYPE_CHECKING:
    from urllib3 import PoolManager

#: A connection that carries nothing is asked whether it lives after this time, so often (seconds,
#: times): a stream may be silent for minutes.
_ALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))

#: Connections that are kept: for two streams, and for what is asked meanwhile.
CONNECTIONS = 4


class ServerAddress(Protocol):
    """The way to one server.

    Attributes:
        server: its address, ``https://HOST:PORT`` and perhaps a path.
        authorities: the certificates that its own must be signed by, PEM; empty: the system's.
        server_name: the name that its certificate must have; empty: that of the address.
        verified: whether its certificate is looked at.
        proxy: by which it is reached; empty: as the environment says.
        origin: where all of this was read, for people.
    """

    @property
    def server(self) -> str: ...
    @property
    def authorities(self) -> str: ...
    @property
    def server_name(self) -> str: ...
    @property
    def verified(self) -> bool: ...
    @property
    def proxy(self) -> str: ...
    @property
    def origin(self) -> str: ...


def connections(
    access: ServerAddress,
    certificate: Certificate | None,
    environment: Mapping[str, str],
    extra: str,
) -> PoolManager:
    """Return a pool of connections to a server, of which none is open yet.

    Args:
        access: how it is reached.
        certificate: that it is shown; None: none.
        environment: variables that name proxies.
        extra: the one of ours that has the library, for people.

    Raises:
        PermanentBackendError: what it needs is not installed, or not usable.
    """
    try:
        from urllib3 import PoolManager, ProxyManager, disable_warnings
        from urllib3.connection import HTTPConnection
        from urllib3.exceptions import InsecureRequestWarning
        from urllib3.util import make_headers
    except ImportError as error:
        raise PermanentBackendError(
            "services over HTTP need urllib3, which is not installed here",
            hint=f"pip install 'bequeath[{extra}]'",
        ) from error
    # It logs whole addresses, and in those of some services is a password, or a signature.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    _demand_address(access.server, "its address", access.origin)
    options: dict[str, Any] = {
        "maxsize": CONNECTIONS,
        "block": False,
        "socket_options": [*HTTPConnection.default_socket_options, *_keep_alive()],
    }
    if access.server.startswith("https:"):
        options["ssl_context"] = _tls(access, certificate)
        options["server_hostname"] = access.server_name or None  # which the certificate must have
        if not access.verified:
            options["assert_hostname"] = False
            disable_warnings(InsecureRequestWarning)  # who wrote that knows it
    proxy = access.proxy or _proxy(access.server, environment)
    if not proxy:
        return PoolManager(**options)
    _demand_address(proxy, "the address of its proxy", access.origin)
    parts = urlsplit(proxy)
    if parts.scheme not in ("http", "https"):
        raise PermanentBackendError(
            f"its proxy is one of {parts.scheme or 'no kind'}, and only http and https are known",
            hint="a key of the file names it ('proxy-url'), or HTTPS_PROXY",
            where=access.origin,
        )
    login = f"{parts.username}:{parts.password or ''}" if parts.username else None
    login = None if login is None else unquote(login)
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return ProxyManager(address, proxy_headers=make_headers(proxy_basic_auth=login), **options)


def _demand_address(address: str, what: str, origin: str) -> None:
    """See that an address can be read: else errors of libraries repeat it, with its login."""
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url

    try:
        parse_url(address)
        urlsplit(address)
    except (LocationParseError, ValueError):
        text = f"{what} has no host, or no port, that can be"
        raise PermanentBackendError(text, hint="write https://HOST:PORT", where=origin) from None


def _tls(access: ServerAddress, certificate: Certificate | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=access.authorities or None)
    except (ssl.SSLError, ValueError) as error:
        text = "its certificate authority is no certificate"
        raise PermanentBackendError(text, where=access.origin) from error
    if not access.verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is None:
        return context
    # The library reads files only; this one has no reader but us, and is gone in a moment.
    with tempfile.NamedTemporaryFile(prefix="bequeath-") as file:
        file.write(certificate.chain + b"\n" + certificate.key + b"\n")
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_no_passphrase)
        except (ssl.SSLError, ValueError) as error:
            reason = error.reason if isinstance(error, ssl.SSLError) else error
            reason = reason or "they are no PEM"
            text = f"the client's certificate and its key cannot be used: {reason}"
            raise NotLoggedIn(text, where=access.origin) from error
    return context


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase, which nobody can be asked for here")


def _keep_alive() -> list[tuple[int, int, int]]:
    numbers = [(getattr(socket, name, None), value) for name, value in _ALIVE]
    known = [(socket.IPPROTO_TCP, number, value) for number, value in numbers if number is not None]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *known]


def _proxy(server: str, environment: Mapping[str, str]) -> str:
    """The proxy that variables name for a server; empty if none."""
    parts = urlsplit(server)
    lower = {key.lower(): value for key, value in environment.items() if value}
    bypass = {"no": lower.get("no_proxy", "")}
    if urllib.request.proxy_bypass_environment(parts.netloc, bypass):  # type: ignore[attr-defined]
        return ""
    return lower.get(f"{parts.scheme}_proxy", "")
