"""The process: it binds, says where it is, serves, and ends within two seconds when asked to."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import os
import resource
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uvicorn

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.web import instances
from dispatcher.web.application import Application
from dispatcher.web.audit import AuditLog
from dispatcher.web.connection import MOST_CONNECTIONS, MOST_HEADER_BYTES, BoundedConnection
from dispatcher.web.instances import Instance
from dispatcher.web.keys import Keys
from dispatcher.web.settings import WebSettings

#: Seconds that answers have to come to their end.
_GRACE_S: Final = 1

_KEEP_ALIVE_S: Final = 30

#: Descriptors of files for connections and stores.
_DESCRIPTORS: Final = 4_096

_LOG_NAME: Final = "web.log"


class _Server(uvicorn.Server):
    """A server that ends its streams before it waits for its connections."""

    def __init__(self, config: uvicorn.Config, on_end: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_end = on_end

    def finish(self) -> None:
        """Ask it to end. Any thread, or a handler of signals."""
        self.handle_exit(signal.SIGTERM, None)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End it."""
        self._on_end()
        await super().shutdown(sockets)


def serve(
    settings: WebSettings, ready: Callable[[Instance, str], None], *, with_stdin: bool = False
) -> None:
    """Serve until SIGTERM or Ctrl-C. Blocks; in the main thread. The caller's process should end
    after it: threads that wait for a machine elsewhere are left behind.

    Args:
        settings: of the server.
        ready: gets the server and a first link to it, once it answers.
        with_stdin: end when stdin does, as the one who started it has ended.

    Raises:
        UserError: the settings are wrong, or the port is taken.
        PermanentBackendError: it cannot listen there.
    """
    settings.check()
    keys = Keys(settings.state)
    listening = _bound(settings)
    if settings.socket is None:
        settings = dataclasses.replace(settings, port=listening.getsockname()[1])
    instance = _instance(settings)
    path = instances.path_of(settings)
    audit = AuditLog(settings.state / "logs" / _LOG_NAME)
    application = Application(settings, keys, audit)
    config = uvicorn.Config(
        application.app,
        http=BoundedConnection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    server = _Server(config, application.close)
    _give_logs_to(audit)
    _more_descriptors()
    instances.publish(path, instance)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: server.finish())
    if with_stdin:
        threading.Thread(target=_until_stdin_ends, args=(server,), daemon=True).start()
    audit.say("started", None, pid=os.getpid(), address=instance.address)
    try:
        asyncio.run(_serving(server, listening, lambda: ready(instance, _link(instance, keys))))
    finally:
        application.close()
        _take_back(path, settings)
        audit.say("ended", None, pid=os.getpid())


async def _serving(
    server: uvicorn.Server, listening: socket.socket, ready: Callable[[], None]
) -> None:
    serving = asyncio.create_task(server.serve([listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        ready()
    await serving


def _link(instance: Instance, keys: Keys) -> str:
    return f"{instance.address}/login?once={keys.new_link()}"


def _instance(settings: WebSettings) -> Instance:
    shown = settings.host
    if shown in ("0.0.0.0", "::"):  # noqa: S104 - compared
        shown = socket.gethostname()
    return Instance(
        pid=os.getpid(),
        machine=socket.gethostname(),
        host=settings.host,
        port=settings.port if settings.socket is None else 0,
        socket="" if settings.socket is None else str(settings.socket.absolute()),
        prefix=settings.prefix,
        tls=settings.tls,
        shown=shown,
        started_at=time.time(),
        proxy=settings.behind_proxy,
    )


def _bound(settings: WebSettings) -> socket.socket:
    """Bind and listen. Raises as :func:`serve`."""
    if settings.socket is not None:
        return _bound_unix(settings, settings.socket.absolute())
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2_048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _taken(settings, f"port {settings.port}") from error
        raise PermanentBackendError(
            f"the page cannot listen at {settings.host}:{settings.port}: {error.strerror or error}"
        ) from error
    return listening


def _bound_unix(settings: WebSettings, path: Path) -> socket.socket:
    try:
        if path.exists() and stat.S_ISSOCK(path.lstat().st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(1.0)
                if probe.connect_ex(str(path)) == 0:
                    raise _taken(settings, str(path))
            path.unlink()  # left behind by one that was killed
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listening.bind(str(path))
        finally:
            os.umask(before)
        listening.listen(2_048)
    except OSError as error:
        raise PermanentBackendError(
            f"the page cannot listen there: {error.strerror or error}",
            hint="the path of a socket has about a hundred letters at most",
            where=str(path),
        ) from error
    return listening


def _taken(settings: WebSettings, where: str) -> UserError:
    known = instances.read(instances.path_of(settings))
    if known is not None and known.answers():
        return UserError(
            f"a page is served on {where} already, by process {known.pid}",
            hint="`bequeath web --link` prints a link to it; for a second one, name another --port",
        )
    return UserError(
        f"another program has {where}", hint="name another one: bequeath web --port NUMBER"
    )


def _take_back(path: Path, settings: WebSettings) -> None:
    known = instances.read(path)
    if known is not None and known.pid == os.getpid():
        path.unlink(missing_ok=True)
    if settings.socket is not None:
        settings.socket.unlink(missing_ok=True)


def _until_stdin_ends(server: _Server) -> None:
    while sys.stdin.buffer.read(4_096):
        pass
    server.finish()


def _give_logs_to(audit: AuditLog) -> None:
    """Write what the library says of faults to our log."""
    import logging

    for name in ("uvicorn.error", "asyncio"):
        log = logging.getLogger(name)
        log.handlers = list(audit.log.handlers)
        log.setLevel(logging.WARNING)
        log.propagate = False


def _more_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
