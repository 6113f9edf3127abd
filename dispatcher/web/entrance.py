"""Routes about the server itself: signing in and out, the session, its description, its health."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import Annotated, Any, Final

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dispatcher.operations.operation import Arguments, Scope
from dispatcher.web import pages
from dispatcher.web.answering import answer, encoded
from dispatcher.web.audit import AuditLog
from dispatcher.web.faults import RequestRefused
from dispatcher.web.instances import own_mark
from dispatcher.web.keys import LINK_S, Identity, Keys, proof_of
from dispatcher.web.route import WebRoute, demand_scope, identity_of, query_of, read_arguments
from dispatcher.web.settings import WebSettings, version

_SECURE: Final = "https"

#: Letters of a challenge that count.
_MOST_CHALLENGE: Final = 100


class SignIn(Arguments, frozen=True):
    """A link: one that opens the page once, or one that was given away to read."""

    once: Annotated[str, Meta(max_length=200)] = ""
    share: Annotated[str, Meta(max_length=200)] = ""


class Entrance:
    """Answers these routes."""

    def __init__(
        self,
        settings: WebSettings,
        keys: Keys,
        audit: AuditLog,
        describe: Callable[[], dict[str, Any]],
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._audit = audit
        self._describe = describe
        self._description = b""
        self._mark = own_mark(settings)

    def routes(self) -> list[WebRoute]:
        """List them."""
        return [
            WebRoute(
                "GET /session", "Who one is here, and what one may.",
                Scope.READ, self.session, answer="version, scope, logs, token, user",
            ),
            WebRoute(
                "POST /links", "Make a link that opens the page once; for its owner.",
                Scope.CHANGE, self.link, answer="path, seconds",
            ),
            WebRoute(
                "DELETE /session", "Sign out: the browser forgets its cookie.",
                Scope.READ, self.sign_out, answer="signed_out",
            ),
            WebRoute(
                "GET /openapi.json", "This description, by OpenAPI 3.1.",
                Scope.READ, self.description, answer="an OpenAPI document",
            ),
        ]  # fmt: skip

    async def healthy(self, request: Request) -> Response:
        """Answer that it runs; to a challenge also that it is the owner's."""
        challenge = request.query_params.get("challenge", "")[:_MOST_CHALLENGE]
        proof = f" {proof_of(self._keys.token, self._mark, challenge)}" if challenge else ""
        return Response(f"ok{proof}\n", media_type="text/plain")

    async def sign_in(self, request: Request) -> Response:
        """Exchange a link for a cookie, so that nothing secret stays in the address bar."""
        if request.method == "HEAD":  # a preview must not use the link up
            return Response()
        given = read_arguments(SignIn, query_of(request, SignIn), texts=True)
        if given.once:
            identity = self._keys.take_link(given.once)
        else:
            identity = self._keys.by_token(given.share) if given.share else None
            if identity is not None and not identity.share:
                identity = None  # the owner's token is no link
        if identity is None:
            self._audit.say("sign-in refused", None)
            body = pages.document(
                "<h1>bequeath</h1><p>This link was used already, or is too old. This prints a new "
                "one:</p><pre>bequeath web --link</pre>"
            )
            return Response(body, 401, media_type="text/html; charset=utf-8")
        self._audit.say("signed in", identity)
        there = f"{self._settings.prefix}/"
        elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
        response = pages.passing_page(there) if elsewhere else RedirectResponse("./", 303)
        self._set_cookie(request, response, identity)
        return response

    def _set_cookie(self, request: Request, response: Response, identity: Identity) -> None:
        value, seconds = self._keys.cookie(identity)
        response.set_cookie(
            self._settings.cookie,
            value,
            max_age=seconds,
            path=self._settings.prefix or "/",
            secure=self._is_secure(request),
            httponly=True,
            samesite="strict",
        )

    def _is_secure(self, request: Request) -> bool:
        """Whether the browser speaks TLS; a proxy is believed only where one was named."""
        if self._settings.behind_proxy:
            return request.headers.get("x-forwarded-proto", "").lower() == _SECURE
        return self._settings.tls

    async def session(self, request: Request) -> Response:
        """Answer with who asks."""
        identity = identity_of(request)
        described = {
            "version": version(),
            "scope": "change" if Scope.CHANGE in identity.scopes else "read",
            "logs": Scope.LOGS in identity.scopes,
            "token": f"…{identity.mark}",
            "user": identity.share or _user(),
        }
        return answer(request, encoded(described))

    async def link(self, request: Request) -> Response:
        """Answer with a link that counts once."""
        identity = demand_scope(request, Scope.CHANGE)
        if identity.by_cookie:
            raise RequestRefused("scope", "a link is made by the token, and by no page")
        self._audit.say("link made", identity)
        return Response(
            encoded({"path": f"/login?once={self._keys.new_link()}", "seconds": LINK_S}),
            media_type="application/json",
        )

    async def sign_out(self, request: Request) -> Response:
        """Take the cookie away."""
        self._audit.say("signed out", identity_of(request))
        response = Response(encoded({"signed_out": True}), media_type="application/json")
        response.delete_cookie(
            self._settings.cookie,
            path=self._settings.prefix or "/",
            secure=self._is_secure(request),
            httponly=True,
            samesite="strict",
        )
        return response

    async def description(self, request: Request) -> Response:
        """Answer with the description of all routes."""
        demand_scope(request, Scope.READ)
        if not self._description:
            self._description = encoded(self._describe())
        return answer(request, self._description)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in a container
        return ""
