"""Requests to an MLflow server, by its REST API and the standard library alone."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.sinks.mlflow.answers import MlflowAnswer
from trial_runtime.masking import Mask

#: Seconds for one step of a request and for all of it, and bytes of an answer, at most.
TIMEOUT_S: Final = 60.0
WHOLE_S: Final = 180.0
MOST_BYTES: Final = 32 << 20

#: Characters of a server's own words in an error.
_MOST_TEXT: Final = 300

#: Answers after which the same request may succeed.
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class TrackerRefused(PermanentBackendError):
    """Raised for a request that the server refuses; ``code`` is MLflow's own word for it."""

    def __init__(self, message: str, code: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(message, hint=hint, where=where)
        self.code = code


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nobody: a password would go along."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""


def _handlers(keep: Callable[[socket.socket], None]) -> list[urllib.request.BaseHandler]:
    """Return the handlers of both schemes, which hand on the socket of each connection."""

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            keep(self.sock)

    context = ssl.create_default_context()

    class Encrypted(http.client.HTTPSConnection):
        def connect(self) -> None:
            """Connect; before hands are shaken, the socket can be cut off already."""
            http.client.HTTPConnection.connect(self)  # through a proxy, if there is one
            secret = context.wrap_socket(
                self.sock,
                server_hostname=getattr(self, "_tunnel_host", None) or self.host,
                do_handshake_on_connect=False,
            )
            keep(secret)
            self.sock = secret
            secret.do_handshake()

    class PlainHandler(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, request)

    class EncryptedHandler(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Encrypted, request, context=context)

    return [PlainHandler(), EncryptedHandler()]


class MlflowClient:
    """One server. One thread.

    Args:
        uri: ``http://…`` or ``https://…``.
        secrets: ``token``, or ``username`` and ``password``; or none.
    """

    def __init__(self, uri: str, secrets: Mapping[str, str]) -> None:
        self._base = f"{uri.rstrip('/')}/api/2.0/mlflow/"
        self._uri = uri
        self._headers = {"Content-Type": "application/json", "User-Agent": "bequeath"}
        if "token" in secrets:
            self._headers["Authorization"] = f"Bearer {secrets['token']}"
        elif "username" in secrets:
            both = f"{secrets['username']}:{secrets.get('password', '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(both.encode()).decode()}"
        both_secret = self._headers.get("Authorization", "").partition(" ")[2]
        self._mask = Mask([*secrets.values(), both_secret])  # some servers repeat what they got
        self._sockets: list[socket.socket] = []
        self._opener = urllib.request.build_opener(_NoRedirect(), *_handlers(self._sockets.append))

    def get(self, path: str) -> MlflowAnswer:
        """Ask. Raises ``BackendError``."""
        return self._answer(path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> MlflowAnswer:
        """Send. Raises ``BackendError``."""
        return self._answer(path, json.dumps(body).encode())

    def _answer(self, path: str, body: bytes | None) -> MlflowAnswer:
        request = urllib.request.Request(  # noqa: S310 - the section takes http and https only
            self._base + path, data=body, headers=self._headers
        )
        try:
            with (
                self._cut_off() as late,
                self._opener.open(request, timeout=TIMEOUT_S) as answer,
            ):
                content = answer.read(MOST_BYTES + 1)
                if late.is_set():  # what was cut short looks like an end
                    raise TimeoutError(f"all of it did not come within {WHOLE_S:g} s")
        except urllib.error.HTTPError as error:
            raise self._refused(path, error) from None
        except (OSError, ValueError, http.client.HTTPException) as error:  # no HTTP at all
            reason = getattr(error, "reason", None) or error
            text = self._mask(str(reason))[:_MOST_TEXT]
            raise PassingBackendError(
                f"the MLflow server does not answer: {text}", where=self._uri
            ) from None
        try:
            if len(content) > MOST_BYTES:
                raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
            # By its type: as objects, a few letters that nobody asked for are tens of bytes each.
            return msgspec.json.decode(content or b"{}", type=MlflowAnswer)
        except (ValueError, RecursionError) as error:  # msgspec's are among them
            raise PermanentBackendError(
                f"what answers at {path.partition('?')[0]!r} is no MLflow server: "
                f"{self._mask(str(error))[:_MOST_TEXT]}",
                where=self._uri,
            ) from None

    @contextlib.contextmanager
    def _cut_off(self) -> Iterator[threading.Event]:
        """Cut the connection when the whole answer takes too long, however it dribbles in; yield
        what is set by that."""
        late = threading.Event()

        def cut() -> None:
            late.set()
            for each in list(self._sockets):
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(each, socket.SHUT_RDWR)  # below TLS, if there is any

        self._sockets.clear()
        timer = threading.Timer(WHOLE_S, cut)
        timer.daemon = True
        timer.start()
        try:
            yield late
        finally:
            timer.cancel()
            self._sockets.clear()

    def _refused(self, path: str, error: urllib.error.HTTPError) -> BackendError:
        """The error that an answer stands for."""
        with error:
            try:
                told = json.loads(error.read(_MOST_TEXT * 40))
            except (OSError, ValueError, RecursionError, http.client.HTTPException):
                told = {}
        told = told if isinstance(told, dict) else {}
        message, code = (
            one if isinstance(one, str) else ""
            for one in (told.get("message"), told.get("error_code"))
        )
        # Masked before it is cut: half a secret would not be known as one.
        words = self._mask(message)[:_MOST_TEXT]
        text = f"the MLflow server answers {error.code} at {path.partition('?')[0]!r}"
        text = f"{text}: {words}" if words else text
        if error.code in _PASSING:
            return PassingBackendError(text, where=self._uri)
        hint = ""
        if error.code in (401, 403):
            hint = "give the sink a 'token', or 'username' and 'password'"
        elif 300 <= error.code < 400:
            hint = "name the address that it leads to: a password is sent to no other"
        return TrackerRefused(text, code, hint=hint, where=self._uri)
