"""All routes of an endpoint, behind its guard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dispatcher.errors import DispatcherError, InternalError
from dispatcher.nni.rest.changing import NniChanging, not_here
from dispatcher.nni.rest.guard import EndpointGuard, nni_error
from dispatcher.nni.rest.jobs import JobTable
from dispatcher.nni.rest.portal import Portal
from dispatcher.nni.rest.reading import NniReading
from dispatcher.nni.rest.settings import API, EndpointSettings
from dispatcher.web.audit import AuditLog
from dispatcher.web.faults import RequestRefused
from dispatcher.web.live import Hub
from dispatcher.web.work import Pools


class NniEndpoint:
    """All parts of an endpoint, put together.

    Args:
        settings: of the endpoint; with the port that it has.
        audit: the log.
        finish: closes it.
    """

    def __init__(
        self, settings: EndpointSettings, audit: AuditLog, finish: Callable[[], None]
    ) -> None:
        self._audit = audit
        self._pools = Pools()
        self._hub = Hub(self._pools)
        self._jobs = JobTable(settings.folder)
        self.reading = NniReading(settings, self._jobs, self._hub, self._pools)
        self._changing = NniChanging(settings, self._jobs, self._pools, audit, finish)
        self._portal = Portal(settings)
        inner = Starlette(
            routes=self._routes(),
            exception_handlers={
                DispatcherError: _refused,
                HTTPException: _not_routed,
                Exception: self._failed,
            },
        )
        inner.router.redirect_slashes = False
        self.app = EndpointGuard(inner, settings, audit)

    def _routes(self) -> list[Route]:
        read, change = self.reading, self._changing
        rows: list[tuple[str, Callable[[Request], Any]]] = [
            ("GET /version", read.version),
            ("GET /check-status", read.status),
            ("GET /experiment", read.experiment),
            ("PUT /experiment", change.update),
            ("DELETE /experiment", change.stop),
            ("POST /experiment", not_here),
            ("PUT /experiment/cluster-metadata", not_here),
            ("POST /experiment/import-data", change.import_data),
            ("GET /experiment-metadata", read.metadata),
            ("GET /experiments-info", read.experiments),
            ("GET /job-statistics", read.statistics),
            ("GET /trial-jobs", read.trials),
            ("POST /trial-jobs", change.submit),
            ("GET /trial-jobs/{trial}", read.trial),
            ("DELETE /trial-jobs/{trial}", change.cancel),
            ("GET /metric-data", read.metrics),
            ("GET /metric-data/", read.metrics),
            ("GET /metric-data/{trial}", read.metrics),
            ("GET /metric-data-range/{first}/{last}", read.metrics_in_range),
            ("GET /metric-data-latest", read.latest_metrics),
            ("GET /metric-data-latest/", read.latest_metrics),
            ("GET /trial-file/{trial}/{name}", read.trial_file),
            ("GET /trial-log/{trial}/{name}", read.trial_file),
            ("GET /export-data", read.results),
            ("GET /tensorboard-tasks", read.nothing),
            ("DELETE /tensorboard-tasks", not_here),
            ("POST /tensorboard", not_here),
        ]
        return [
            *(_route(route, API, act) for route, act in rows),
            _route("GET /logs/{name}", "", read.log),
            _route("GET /{path:path}", "", self._portal.answer),
        ]

    def close(self) -> None:
        """End all streams, and take no more work."""
        self._hub.close()
        self._pools.close()

    async def _failed(self, request: Request, error: Exception) -> Response:
        """Answer where nobody thought of it; the log has the rest."""
        self._audit.log.error("fault at %s", request.url.path[:200], exc_info=error)
        return nni_error(
            InternalError(
                f"this is a fault of bequeath: {type(error).__name__}",
                hint="the log of this port has more; please report it",
            )
        )


def _route(route: str, below: str, act: Callable[[Request], Any]) -> Route:
    method, _, path = route.partition(" ")

    async def answered(request: Request) -> Response:
        response = await act(request)
        assert isinstance(response, Response)
        return response

    return Route(below + path, answered, methods=[method])


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DispatcherError)
    return nni_error(error)


async def _not_routed(request: Request, error: Exception) -> Response:
    """Answer where no route fits."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return nni_error(RequestRefused("method", f"this address does not take {request.method}"))
    return nni_error(RequestRefused("no-page", "there is nothing at this address"))
