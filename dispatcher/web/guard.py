"""The checks that every request must pass: host, origin, token. Allow-lists only.

A page in the owner's browser can send requests here, and a name that somebody else owns can be
pointed at this machine; so a token alone is not enough, and loopback alone is nothing.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dispatcher.errors import DispatcherError
from dispatcher.web import pages
from dispatcher.web.audit import AuditLog
from dispatcher.web.faults import RequestRefused, answer_to
from dispatcher.web.keys import Identity, Keys
from dispatcher.web.settings import WebSettings, split_authority, version

#: Bytes of a body.
MOST_BODY: Final = 2 << 20

#: Bytes of an address and all headers.
MOST_HEADERS: Final = 32 << 10

#: The header by which a page of ours shows that a script of its own asks.
OWN_HEADER: Final = "x-bequeath"

#: Methods that change nothing.
SAFE: Final = frozenset({"GET", "HEAD"})

_METHODS: Final = SAFE | {"POST", "PUT", "PATCH", "DELETE"}

#: Paths that answer without a token, and say nothing that needs one.
OPEN: Final = frozenset({"/healthz", "/login"})

#: Tries with a wrong token in a minute, after which further ones are not looked at.
_MOST_TRIES: Final = 100

#: Cookies of our name that are looked at: another program of this machine may have set some.
_MOST_COOKIES: Final = 8

_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'self'"
)

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Bequeath-Version": version(),
}


def demand_short(scope: Scope) -> None:
    """Raise for long headers, which a parser lets through when they come all at once."""
    many = len(scope["raw_path"]) + len(scope["query_string"])
    if many + sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
        raise RequestRefused(
            "too-large", f"address and headers have {MOST_HEADERS:,} bytes at most"
        )


def refuse_strangers(method: str, headers: Headers, settings: WebSettings, *, page: bool) -> None:
    """Raise unless a request is addressed to us, and comes from a page of ours or from no page.

    Args:
        method: of the request.
        headers: its headers.
        settings: the names by which we go.
        page: whether a browser may come here from elsewhere, by following a link.

    Raises:
        RequestRefused: the reason, for the one who asks.
    """
    if method not in _METHODS:
        raise RequestRefused("method", f"{method} is no method of this server")
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not hosts[0]:
        raise RequestRefused("request", "a request names one host")
    name, _ = split_authority(hosts[0])
    if name not in settings.names:
        raise RequestRefused(
            "host",
            f"this page does not go by the name {name!r}",
            hint=f"if the name is yours, start it with: bequeath web --allow-host {name}",
        )
    site = headers.get("sec-fetch-site")
    follows_link = (
        page
        and method in SAFE
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
    if site not in (None, "same-origin", "none") and not follows_link:
        raise RequestRefused("origin", "the request comes from another site")
    if method not in SAFE and site == "none":
        raise RequestRefused("origin", "a change is asked for by the page itself, or by a script")
    origins = headers.getlist("origin")
    if origins and not (len(origins) == 1 and _is_own(origins[0], hosts[0], settings)):
        raise RequestRefused(
            "origin",
            f"the request comes from {origins[0][:200]!r}",
            hint="behind a proxy, name the host of the address bar: --allow-host NAME:PORT",
        )


def _is_own(origin: str, host: str, settings: WebSettings) -> bool:
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return False
    usual = _DEFAULT_PORTS[parts.scheme]
    asked = (parts.hostname, str(port or usual))
    known = [split_authority(each) for each in (host, *settings.authorities)]
    return asked in [(name, each or usual) for name, each in known]


class Guard:
    """The outermost part of the application: refuses, finds out who asks, and adds headers."""

    def __init__(self, app: ASGIApp, settings: WebSettings, keys: Keys, audit: AuditLog) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._audit = audit
        self._tries: deque[float] = deque(maxlen=_MOST_TRIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        send = self._with_headers(scope, send)
        path = self._below_prefix(scope)
        headers = Headers(scope=scope)
        is_page = pages.is_page(path)
        try:
            demand_short(scope)
            refuse_strangers(scope["method"], headers, self._settings, page=is_page)
            length = headers.get("content-length", "")
            if length.isdigit() and int(length) > MOST_BODY:
                raise RequestRefused("too-large", f"a body has {MOST_BODY:,} bytes at most")
            if path in OPEN:
                identity = None
            else:
                identity = self._identified(headers)
                self._demand_own_header(scope["method"], headers, identity)
        except DispatcherError as error:
            if isinstance(error, RequestRefused):
                self._audit.refused(scope, error)
                if error.kind.kind == "no-token" and is_page:
                    await pages.sign_in_page(headers)(scope, receive, send)
                    return
            await answer_to(error)(scope, receive, send)
            return
        scope.setdefault("state", {})["identity"] = identity
        await self._app(scope, receive, send)

    def _below_prefix(self, scope: Scope) -> str:
        """Take the prefix off the path, where the proxy has left it."""
        path: str = scope["path"]
        prefix = self._settings.prefix
        if prefix and (path == prefix or path.startswith(f"{prefix}/")):
            path = path[len(prefix) :] or "/"
            scope["path"] = path
        return path

    def _identified(self, headers: Headers) -> Identity:
        kind, _, token = headers.get("authorization", "").partition(" ")
        is_script = kind.lower() == "bearer"
        # What a proxy asks people for comes along as `Basic`, and is nothing to us.
        identity = self._by_token(token.strip()) if is_script else self._by_cookie(headers)
        if identity is not None:
            return identity
        raise RequestRefused(
            "no-token",
            "the token does not count" if is_script else "this needs a token or a cookie",
            hint="`bequeath web --link` prints a link for a browser, `bequeath web --token` the "
            "token for scripts: Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def _by_token(self, token: str) -> Identity | None:
        identity = self._keys.by_token(token)
        if identity is None:
            now = time.monotonic()
            if len(self._tries) == _MOST_TRIES and now - self._tries[0] < 60:
                raise RequestRefused("too-many", "too many wrong tokens within a minute")
            self._tries.append(now)
        return identity

    def _by_cookie(self, headers: Headers) -> Identity | None:
        """Look at each cookie of our name. Cookies of other programs on this machine come along,
        since browsers do not tell ports apart: none of them may hide ours."""
        ours = f"{self._settings.cookie}="
        given = "; ".join(headers.getlist("cookie")).split(";")
        values = [one.strip().removeprefix(ours) for one in given if one.strip().startswith(ours)]
        found = (self._keys.by_cookie(value) for value in values[:_MOST_COOKIES])
        return next((one for one in found if one is not None), None)

    def _demand_own_header(self, method: str, headers: Headers, identity: Identity) -> None:
        if identity.by_cookie and method not in SAFE and headers.get(OWN_HEADER) != "1":
            raise RequestRefused(
                "origin",
                "a change by a cookie needs the header X-Bequeath: 1",
                hint="scripts use the token: Authorization: Bearer TOKEN",
            )

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        secure = self._settings.tls

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if secure:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
                self._audit.answered(scope, message["status"])
            await send(message)

        return sent
