"""The process: it binds, says where it is, serves, and ends within two seconds when asked to."""

from __future__ import annotations

import dataclasses
import errno
import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.web import instances
from dispatcher.web.application import Application
from dispatcher.web.audit import AuditLog
from dispatcher.web.instances import Instance
from dispatcher.web.keys import Keys
from dispatcher.web.service import Service, bound
from dispatcher.web.settings import WebSettings

_LOG_NAME: Final = "web.log"


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
    listening = _bound(settings, keys)
    inode = _inode(settings)
    if settings.socket is None:
        settings = dataclasses.replace(settings, port=listening.getsockname()[1])
    instance = _instance(settings)
    path = instances.path_of(settings)
    audit = AuditLog(settings.state / "logs" / _LOG_NAME)
    application = Application(settings, keys, audit)
    service = Service(
        application.app, application.close, tls_cert=settings.tls_cert, tls_key=settings.tls_key
    )
    try:
        instances.publish(path, instance)
        audit.say("started", None, pid=os.getpid(), address=instance.address)
        service.run_until_told(
            [listening],
            lambda: ready(instance, _link(instance, keys)),
            audit,
            with_stdin=with_stdin,
        )
    finally:
        application.close()
        _take_back(path, settings, inode)
        audit.say("ended", None, pid=os.getpid())


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


def _bound(settings: WebSettings, keys: Keys) -> socket.socket:
    """Bind and listen. Raises as :func:`serve`."""
    if settings.socket is not None:
        return _bound_unix(settings, settings.socket.absolute(), keys)
    try:
        return bound(settings.host, settings.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _taken(settings, f"port {settings.port}", keys) from error
        raise PermanentBackendError(
            f"the page cannot listen at {settings.host}:{settings.port}: {error.strerror or error}"
        ) from error


def _bound_unix(settings: WebSettings, path: Path, keys: Keys) -> socket.socket:
    try:
        if os.path.lexists(path):
            _remove_stale(settings, path, keys)
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


def _remove_stale(settings: WebSettings, path: Path, keys: Keys) -> None:
    """Remove a socket that one left behind who was killed. Raises ``OSError``, or ``UserError`` for
    anything else: whoever is busy, or whose socket we may not open, is not gone."""
    info = path.lstat()
    if not stat.S_ISSOCK(info.st_mode):
        raise UserError(
            "something that is no socket is at its path",
            hint="name another path; nothing is removed there but a socket that is left behind",
            where=str(path),
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        if probe.connect_ex(str(path)) != errno.ECONNREFUSED or info.st_uid != os.geteuid():
            raise _taken(settings, str(path), keys)
    path.unlink()


def _taken(settings: WebSettings, where: str, keys: Keys) -> UserError:
    known = instances.read(instances.path_of(settings))
    if known is not None and known.answers(keys.token):
        return UserError(
            f"a page is served on {where} already, by process {known.pid}",
            hint="`bequeath web --link` prints a link to it; for a second one, name another --port",
        )
    other = "--port NUMBER" if settings.socket is None else "--socket PATH"
    return UserError(f"another program has {where}", hint=f"name another one: bequeath web {other}")


def _take_back(path: Path, settings: WebSettings, inode: tuple[int, int]) -> None:
    """Remove the server's file and its socket, unless another server has made its own there."""
    known = instances.read(path)
    if known is not None and known.pid == os.getpid():
        path.unlink(missing_ok=True)
    if settings.socket is not None and _inode(settings) == inode:
        settings.socket.unlink(missing_ok=True)


def _inode(settings: WebSettings) -> tuple[int, int]:
    """Return what tells the socket's file from another one; zeros if there is none."""
    if settings.socket is None:
        return (0, 0)
    try:
        info = settings.socket.lstat()
    except OSError:
        return (0, 0)
    return (info.st_dev, info.st_ino)
