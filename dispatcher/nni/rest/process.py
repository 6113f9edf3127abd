"""The process of an endpoint: it listens on this machine only, and closes when nobody needs it."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import os
import socket
import time
from collections.abc import Callable
from typing import Final

from dispatcher.errors import DispatcherError, ExperimentNotFound, PermanentBackendError, UserError
from dispatcher.nni.rest import endpoints
from dispatcher.nni.rest.application import NniEndpoint
from dispatcher.nni.rest.endpoints import OpenEndpoint
from dispatcher.nni.rest.peers import KnownConnection
from dispatcher.nni.rest.settings import EndpointSettings
from dispatcher.queries import ExperimentStatus
from dispatcher.web.audit import AuditLog
from dispatcher.web.service import Service, bound

#: Seconds between two looks at whether it is still needed.
LOOK_S: Final = 1.0

#: Seconds for which it stays once the experiment was stopped, so that clients hear it.
LINGER_S: Final = 5.0

#: Seconds that a head may take until the experiment runs.
_BEGINS_S: Final = 60.0

#: Seconds without a request after which it closes, if the experiment does not run.
IDLE_S: Final = 3_600.0


def serve(
    settings: EndpointSettings,
    ready: Callable[[EndpointSettings], None],
    *,
    with_stdin: bool = False,
) -> None:
    """Serve until SIGTERM or Ctrl-C, or until nobody needs it. Blocks; in the main thread.

    Args:
        settings: of the endpoint.
        ready: gets them with the port that it has, once it answers.
        with_stdin: end when stdin does, as the one who started it has ended.

    Raises:
        UserError: the port is taken.
        PermanentBackendError: it cannot listen there.
    """
    listening = _bound(settings)
    settings = dataclasses.replace(settings, port=listening[0].getsockname()[1])
    audit = AuditLog(settings.state / "logs" / f"{settings.port}.log")
    service: Service
    endpoint = NniEndpoint(settings, audit, lambda: service.finish())
    service = Service(endpoint.app, endpoint.close, connection=KnownConnection)
    about = settings.folder.name
    path = endpoints.publish(
        settings.state,
        OpenEndpoint(
            pid=os.getpid(),
            machine=socket.gethostname(),
            port=settings.port,
            prefix=settings.prefix,
            experiment=about,
            folder=str(settings.folder),
        ),
    )
    closing: list[asyncio.Task[None]] = []

    def opened() -> None:
        if settings.until_over:
            closing.append(asyncio.ensure_future(close_when_over(endpoint, service)))
        ready(settings)

    audit.say("opened", None, pid=os.getpid(), experiment=about)
    try:
        service.run_until_told(listening, opened, audit, with_stdin=with_stdin)
    finally:
        endpoint.close()
        endpoints.take_back(path)
        audit.say("closed", None, pid=os.getpid(), experiment=about)


async def close_when_over(endpoint: NniEndpoint, service: Service) -> None:
    """Close an endpoint that an experiment has opened for itself, when that is stopped or deleted;
    when it is over, once nobody has asked for an hour."""
    began = time.monotonic()
    ran = False
    while True:
        await asyncio.sleep(LOOK_S)
        now = time.monotonic()
        try:
            status = (await endpoint.reading.standing()).experiment.status
        except ExperimentNotFound:
            break
        except DispatcherError:
            continue  # a store that is locked, too many requests: it is asked again
        if status is ExperimentStatus.RUNNING:
            ran = True
            continue
        stopped = status is ExperimentStatus.STOPPED
        if stopped and (ran or now - began > _BEGINS_S):
            break
        if now - max(endpoint.app.asked_at, began) > IDLE_S:
            break
    await asyncio.sleep(LINGER_S)
    service.finish()


def _bound(settings: EndpointSettings) -> list[socket.socket]:
    """Listen at a port of loopback, by both versions of IP: what clients call ``localhost`` is to
    be nobody else's."""
    try:
        first = bound("127.0.0.1", settings.port)
    except OSError as error:
        raise _unusable(settings, settings.port, error) from error
    port = first.getsockname()[1]
    try:
        return [first, bound("::1", port)]
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) or isinstance(
            error, socket.gaierror
        ):
            return [first]  # this machine has no IPv6
        first.close()
        raise _unusable(settings, port, error) from error


def _unusable(settings: EndpointSettings, port: int, error: OSError) -> DispatcherError:
    if error.errno != errno.EADDRINUSE:
        return PermanentBackendError(
            f"nothing can listen at port {port}: {error.strerror or error}", where="--port"
        )
    known = endpoints.endpoint_at(settings.state, port)
    if known is not None:
        return UserError(
            f"port {port} shows the experiment {known.experiment} already, by process {known.pid}",
            hint="name another one: --port NUMBER",
        )
    return UserError(
        f"another program has port {port}", hint="name another one: --port NUMBER", where="--port"
    )
