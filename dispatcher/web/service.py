"""A process that serves an application with bounds, until it is asked to end."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from dispatcher.web.allocator import give_back_at_once
from dispatcher.web.audit import AuditLog
from dispatcher.web.connection import MOST_CONNECTIONS, MOST_HEADER_BYTES, BoundedConnection

#: Seconds that answers have to come to their end.
_GRACE_S: Final = 1

_KEEP_ALIVE_S: Final = 30

#: Descriptors of files for connections and stores.
_DESCRIPTORS: Final = 4_096


class Service(uvicorn.Server):
    """A server that ends its streams before it waits for its connections.

    Args:
        app: the application.
        on_end: ends its streams.
        connection: the type of its connections.
        tls_cert: file of a certificate; None: it does not encrypt.
        tls_key: file of its key.
    """

    def __init__(
        self,
        app: ASGIApp,
        on_end: Callable[[], None],
        *,
        connection: type[BoundedConnection] = BoundedConnection,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=connection,
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
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
        )
        super().__init__(config)
        self._on_end = on_end

    def finish(self) -> None:
        """Ask it to end. Any thread, or a handler of signals."""
        self.handle_exit(signal.SIGTERM, None)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End it."""
        self._on_end()
        await super().shutdown(sockets)

    def run_until_told(
        self,
        listening: Sequence[socket.socket],
        ready: Callable[[], None],
        audit: AuditLog,
        *,
        with_stdin: bool = False,
    ) -> None:
        """Serve until SIGTERM or Ctrl-C. Blocks; in the main thread.

        Args:
            listening: sockets that listen.
            ready: called once it answers.
            audit: the log for what the library says of faults.
            with_stdin: end when stdin does, as the one who started it has ended.
        """
        give_back_at_once()
        _give_logs_to(audit)
        _more_descriptors()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self.finish())
        if with_stdin:
            threading.Thread(target=self._finish_with_stdin, daemon=True).start()
        asyncio.run(self._serve_and_say(list(listening), ready))

    async def _serve_and_say(
        self, listening: list[socket.socket], ready: Callable[[], None]
    ) -> None:
        serving = asyncio.create_task(self.serve(listening))
        while not self.started and not serving.done():
            await asyncio.sleep(0.01)
        if self.started:
            ready()
        await serving

    def _finish_with_stdin(self) -> None:
        while sys.stdin.buffer.read(4_096):
            pass
        self.finish()


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address of this machine. Raises ``OSError``."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2_048)
    except BaseException:
        listening.close()
        raise
    return listening


def _give_logs_to(audit: AuditLog) -> None:
    """Write what the library says of faults to our log."""
    for name in ("uvicorn.error", "asyncio", "bequeath.web.live"):
        log = logging.getLogger(name)
        log.handlers = list(audit.log.handlers)
        log.setLevel(logging.WARNING)
        log.propagate = False


def _more_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
