"""The checks that every request to an endpoint must pass. NNI's clients send no token.

In place of a token stands the user at the other end of the connection, as the kernel knows it;
where it does not, a prefix that is a secret. A page of another site is in a browser of the same
user, so the rules for hosts, origins and sites of `dispatcher.web.guard` hold as well.
"""

from __future__ import annotations

import hmac
import os
import time
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dispatcher.errors import DispatcherError, UserError
from dispatcher.nni.rest.peers import PEER
from dispatcher.nni.rest.settings import EndpointSettings
from dispatcher.operations.faults import fault_of
from dispatcher.web.answering import encoded
from dispatcher.web.audit import AuditLog
from dispatcher.web.faults import RETRY_AFTER_S, RequestRefused
from dispatcher.web.guard import HEADERS, MOST_BODY, demand_short, refuse_strangers


class EndpointGuard:
    """The outermost part: refuses, takes the prefix off, and adds headers.

    Attributes:
        asked_at: when somebody last came in, by the monotonic clock.
    """

    def __init__(self, app: ASGIApp, settings: EndpointSettings, audit: AuditLog) -> None:
        self._app = app
        self._settings = settings
        self._names = settings.as_of_a_page()
        self._audit = audit
        self.asked_at = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        send = self._with_headers(scope, send)
        try:
            demand_short(scope)
            headers = Headers(scope=scope)
            is_page = scope["method"] == "GET" and "/api/" not in scope["path"]
            self._refuse_strangers(scope["method"], headers, page=is_page)
            self._demand_same_user(scope)
            self._take_prefix_off(scope)
            length = headers.get("content-length", "")
            if length.isdigit() and int(length) > MOST_BODY:
                raise RequestRefused("too-large", f"a body has {MOST_BODY:,} bytes at most")
        except DispatcherError as error:
            if isinstance(error, RequestRefused):
                self._audit.refused(scope, error)
            await nni_error(error)(scope, receive, send)
            return
        self.asked_at = time.monotonic()
        if not scope["path"]:  # its links count from the slash
            leads_on = Response(status_code=307, headers={"Location": f"{self._settings.path}/"})
            await leads_on(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refuse_strangers(self, method: str, headers: Headers, *, page: bool) -> None:
        try:
            refuse_strangers(method, headers, self._names, page=page)
        except RequestRefused as error:
            hint = "ask it as localhost or 127.0.0.1" if error.kind.kind == "host" else ""
            raise RequestRefused(error.kind.kind, error.message, hint=hint) from error

    def _demand_same_user(self, scope: Scope) -> None:
        owner = scope.get("state", {}).get(PEER)
        if owner == os.getuid() or (owner is None and self._settings.is_secret):
            return
        raise RequestRefused(
            "user",
            "this port answers the user who opened it, and nobody else"
            if owner is not None
            else "this system does not say whose this connection is",
            hint=""
            if owner is not None
            else "open it with --url_prefix and a secret of at least 16 letters",
        )

    def _take_prefix_off(self, scope: Scope) -> None:
        prefix = self._settings.path
        path: str = scope["path"]
        if not prefix:
            return
        start, rest = path[: len(prefix)], path[len(prefix) :]
        same = hmac.compare_digest(start.encode(errors="replace"), prefix.encode())
        if not same or (rest and not rest.startswith("/")):
            raise RequestRefused("no-page", "there is nothing at this address")
        scope["path"] = rest
        scope["raw_path"] = rest.encode(errors="replace")

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                self._audit.answered(scope, message["status"])
            await send(message)

        return sent


class NotHere(UserError):
    """Raised for what NNI begins over REST, and we do not."""


#: Statuses of errors after which a client may try again.
_AGAIN: Final = (429, 503)


def nni_error(error: DispatcherError) -> Response:
    """Return the answer to an error as NNI gives it: an object with a text, and the status."""
    status = 501 if isinstance(error, NotHere) else fault_of(error).status
    headers = {}
    if isinstance(error, RequestRefused):
        status, headers = error.kind.status, error.headers
    if status in _AGAIN:
        headers = {"Retry-After": str(RETRY_AFTER_S)} | headers
    text = f"{error.message}: {error.hint}" if error.hint else error.message
    if error.where:
        text = f"{text} ({error.where})"
    return Response(encoded({"error": text}), status, headers, "application/json")
