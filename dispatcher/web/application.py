"""The application: all routes, behind the guard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from dispatcher.errors import DispatcherError, InternalError
from dispatcher.operations.openapi import PREFIX
from dispatcher.operations.operation import Operation
from dispatcher.operations.table import OPERATIONS
from dispatcher.web.audit import AuditLog
from dispatcher.web.description import described
from dispatcher.web.entrance import Entrance
from dispatcher.web.faults import RequestRefused, answer_to
from dispatcher.web.gauges import Gauges
from dispatcher.web.guard import Guard
from dispatcher.web.keys import Keys
from dispatcher.web.live import Hub
from dispatcher.web.looking import Looking
from dispatcher.web.outputs import Outputs
from dispatcher.web.pages import Assets
from dispatcher.web.performing import Performer
from dispatcher.web.settings import WebSettings
from dispatcher.web.sharing import Sharing
from dispatcher.web.work import Pools


class Application:
    """All parts of a server, put together.

    Args:
        settings: of the server; with the port that it has.
        keys: who may come in.
        audit: the log.
    """

    def __init__(self, settings: WebSettings, keys: Keys, audit: AuditLog) -> None:
        self._pools = Pools()
        self._audit = audit
        self._hub = Hub(self._pools)
        self._assets = Assets(settings.static, settings.prefix)
        performer = self._performer = Performer(settings.base, self._pools, self._hub, audit)
        looking = Looking(performer, self._pools, self._hub, keys)
        outputs = Outputs(performer, self._pools, self._hub, audit, keys)
        entrance = Entrance(settings, keys, audit, lambda: described(self.own, settings.cookie))
        gauges = Gauges(settings.base, self._pools, self._hub, audit)
        sharing = Sharing(keys, self._pools, audit)
        self.own = [
            *entrance.routes(), *sharing.routes(), *looking.routes(), *outputs.routes()
        ]  # fmt: skip
        routes = [
            *(_route(f"{one.method} {one.path}", one.endpoint) for one in self.own),
            *(
                _route(row.route, partial(_performed, performer, row))
                for row in OPERATIONS.values()
                if row.route
            ),
            Route("/login", entrance.sign_in, methods=["GET"]),
            Route("/healthz", entrance.healthy, methods=["GET"]),
            Route("/metrics", gauges.metrics, methods=["GET"]),
            Route("/assets/{path:path}", self._asset, methods=["GET"]),
            *(Route(path, self._page, methods=["GET"]) for path in _PAGES),
        ]
        inner = Starlette(
            routes=routes,
            exception_handlers={
                DispatcherError: _refused,
                HTTPException: _not_routed,
                Exception: self._failed,
            },
        )
        inner.router.redirect_slashes = False
        self.app: ASGIApp = Guard(inner, settings, keys, audit)

    def close(self) -> None:
        """End all streams, and take no more work."""
        self._hub.close()
        self._performer.plots.close()
        self._pools.close()
        self._performer.models.close()

    async def _page(self, request: Request) -> Response:
        return self._assets.index()

    async def _asset(self, request: Request) -> Response:
        path = str(request.path_params["path"])
        return await self._pools.stores.run(self._assets.asset, request, path)

    async def _failed(self, request: Request, error: Exception) -> Response:
        """Answer where nobody thought of it; the log has the rest."""
        self._audit.log.error("fault at %s", request.url.path[:200], exc_info=error)
        return answer_to(
            InternalError(
                f"this is a fault of bequeath: {type(error).__name__}",
                hint="the server's log has more; please report it",
            )
        )


#: Addresses of the page; it finds out itself which of its views is meant.
_PAGES = (
    "/",
    "/leaderboard",
    "/settings",
    "/e/{experiment}",
    "/e/{experiment}/t/{trial:int}",
    *(
        f"/e/{{experiment}}/{view}"
        for view in ("trials", "lineage", "waits", "hosts", "plots", "compare", "checks")
    ),
)


def _route(route: str, endpoint: Callable[[Request], Any]) -> Route:
    method, _, path = route.partition(" ")
    path = path.replace("{path}", "{path:path}")

    async def answered(request: Request) -> Response:
        response = await endpoint(request)
        assert isinstance(response, Response)
        return response

    return Route(PREFIX + path, answered, methods=[method])


async def _performed(performer: Performer, row: Operation[Any, Any], request: Request) -> Response:
    return await performer.perform(row, request)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DispatcherError)
    return answer_to(error)


async def _not_routed(request: Request, error: Exception) -> Response:
    """Answer where no route fits."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return answer_to(
            RequestRefused(
                "method",
                f"this address does not take {request.method}",
                hint=f"it takes {allowed}" if allowed else "",
                headers={"Allow": allowed} if allowed else {},
            )
        )
    return answer_to(RequestRefused("no-page", "there is nothing at this address"))
