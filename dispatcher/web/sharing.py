"""Routes of the page of settings: links that only read, made, listed and taken back; a new token.

They are for the owner. The owner's token itself is in no answer: a page has no need of it.
"""

from __future__ import annotations

import time
from typing import Annotated, Final

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.operations.operation import Arguments, NoChoice, Scope
from dispatcher.web.answering import answer, encoded
from dispatcher.web.audit import AuditLog
from dispatcher.web.keys import MOST_DAYS, Keys
from dispatcher.web.route import WebRoute, body_of, demand_scope, read_arguments
from dispatcher.web.work import Pools

_USUAL_DAYS: Final = 7.0


class MakeShare(Arguments, frozen=True):
    """A link that only reads."""

    name: Annotated[str, Meta(description="For the list: letters, digits, - _ .", max_length=60)]
    days: Annotated[
        Annotated[float, Meta(gt=0, le=MOST_DAYS)], Meta(description="Days until it ends.")
    ] = _USUAL_DAYS
    logs: Annotated[bool, Meta(description="It reads what trials wrote, too.")] = False


class Sharing:
    """Answers these routes."""

    def __init__(self, keys: Keys, pools: Pools, audit: AuditLog) -> None:
        self._keys = keys
        self._pools = pools
        self._audit = audit

    def routes(self) -> list[WebRoute]:
        """List them."""
        return [
            WebRoute(
                "GET /shares", "Links that only read, by their names; never their tokens.",
                Scope.CHANGE, self.listed, answer="shares",
            ),
            WebRoute(
                "POST /shares", "Make a link that only reads; its token is in this answer alone.",
                Scope.CHANGE, self.make, MakeShare, answer="share, token, path, days, logs",
            ),
            WebRoute(
                "DELETE /shares/{share}", "Take a link back, with all that was signed in by it.",
                Scope.CHANGE, self.revoke, answer="share, revoked",
            ),
            WebRoute(
                "POST /token", "Make a new token: all browsers are signed out, this one too.",
                Scope.CHANGE, self.renew, answer="renewed",
            ),
        ]  # fmt: skip

    async def listed(self, request: Request) -> Response:
        """Answer with all shares."""
        demand_scope(request, Scope.CHANGE)
        now = time.time()
        shares = await self._pools.stores.run(self._keys.shares)
        rows = [
            {
                "share": name,
                "created_at": one.created,
                "expires_at": one.expires,
                "logs": one.logs,
                "over": one.expires <= now,
            }
            for name, one in sorted(shares.items())
        ]
        return answer(request, encoded({"shares": rows}))

    async def make(self, request: Request) -> Response:
        """Make one."""
        identity = demand_scope(request, Scope.CHANGE)
        wanted = read_arguments(MakeShare, await body_of(request), texts=False)
        token = await self._pools.changes.run(
            self._keys.share, wanted.name, wanted.days, logs=wanted.logs
        )
        self._audit.say("share made", identity, share=wanted.name, logs=wanted.logs)
        told = {"share": wanted.name, "token": token, "path": f"/login?share={token}"}
        body = encoded({**told, "days": wanted.days, "logs": wanted.logs})
        return Response(body, media_type="application/json")

    async def revoke(self, request: Request) -> Response:
        """Take one back."""
        identity = demand_scope(request, Scope.CHANGE)
        name = str(request.path_params["share"])
        await self._pools.changes.run(self._keys.revoke, name)
        self._audit.say("share revoked", identity, share=name[:60])
        body = encoded({"share": name, "revoked": True})
        return Response(body, media_type="application/json")

    async def renew(self, request: Request) -> Response:
        """Make a new token."""
        identity = demand_scope(request, Scope.CHANGE)
        read_arguments(NoChoice, await body_of(request), texts=False)
        await self._pools.changes.run(self._keys.renew)
        self._audit.say("token renewed", identity)
        return Response(encoded({"renewed": True}), media_type="application/json")
