"""Requests to one API server: connections, TLS, proxies, and answers in JSON, all bounded.

The library's exceptions end here, as errors that say whether asking again helps.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.connections import connections
from dispatcher.http_services.credentials import Certificate, Proof
from dispatcher.http_services.errors import error_of_exception
from dispatcher.platforms.kubernetes.api.access import Access
from dispatcher.platforms.kubernetes.api.errors import Unreachable, error_of

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

#: How long a connection may take (seconds), and an answer.
CONNECT_S, ANSWER_S = 10.0, 30.0

#: Largest answer, and the largest line of a stream (bytes). An object has 1.5 MB at most; a list is
#: asked for in pages.
MOST_BYTES = 64 << 20
MOST_LINE_BYTES = 4 << 20

#: What may be asked twice, when a connection that was kept has died meanwhile.
_AGAIN = frozenset({"GET", "DELETE", "PATCH"})


@dataclass(frozen=True)
class ServerAnswer:
    """An answer that was no error.

    Attributes:
        document: what came, from JSON; a text, if it was none.
        date: the header of that name.
        warnings: what the server warns of.
    """

    document: Any
    date: str = ""
    warnings: tuple[str, ...] = ()


class Transport:
    """Requests to one server. Threads: any.

    Args:
        access: how it is reached.
        environment: variables that name proxies.
    """

    def __init__(self, access: Access, environment: Mapping[str, str] = os.environ) -> None:
        self._access = access
        self._environment = environment
        self._lock = threading.Lock()
        self._pool: PoolManager | None = None
        self._certificate: Certificate | None = None

    @property
    def where(self) -> str:
        """The server, for people."""
        return urlsplit(self._access.server).netloc

    def ask(
        self,
        method: str,
        path: str,
        *,
        asked: str,
        query: Mapping[str, str | int] | None = None,
        body: object = None,
        kind: str = "application/json",
        accept: str = "application/json",
    ) -> ServerAnswer:
        """Ask, and wait for the whole answer.

        Args:
            method: of HTTP.
            path: below the server's address.
            asked: what is asked, for people, as in "cannot create jobs".
            query: parameters.
            body: of the request, for JSON; None: it has none.
            kind: the type of the body.
            accept: the type of the answer.

        Raises:
            BackendError: one of :mod:`dispatcher.platforms.kubernetes.api.errors`.
        """
        response = self._send(
            method, path, asked=asked, query=query, body=body, kind=kind, accept=accept
        )
        try:
            content = self._content(response, asked)
        finally:
            response.release_conn()
        warnings = tuple(response.headers.getlist("Warning"))
        return ServerAnswer(_document(content), response.headers.get("Date", ""), warnings)

    def stream(
        self, path: str, *, asked: str, query: Mapping[str, str | int], silent_s: float
    ) -> Stream:
        """Ask, and read the answer line by line as it comes.

        Args:
            path: below the server's address.
            asked: what is asked, for people.
            query: parameters.
            silent_s: a longer silence is a connection that has died.

        Raises:
            BackendError: one of :mod:`dispatcher.platforms.kubernetes.api.errors`.
        """
        response = self._send("GET", path, asked=asked, query=query, silent_s=silent_s)
        return Stream(response, self, asked)

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.clear()

    # -- one request ---------------------------------------------------------------------------

    def _send(
        self,
        method: str,
        path: str,
        *,
        asked: str,
        query: Mapping[str, str | int] | None = None,
        body: object = None,
        kind: str = "application/json",
        accept: str = "application/json",
        silent_s: float = ANSWER_S,
    ) -> BaseHTTPResponse:
        url = f"{self._access.server}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": accept, "User-Agent": "bequeath"}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = kind
        tries = 0
        while True:
            tries += 1
            proof = self._access.credentials.proof()
            if proof.authorization:
                headers["Authorization"] = proof.authorization
            again = tries == 1 and method in _AGAIN  # a connection that was kept may have died
            response = self._request(method, url, headers, content, proof, silent_s, asked, again)
            if response is None:
                continue
            if response.status < 300:
                return response
            failed = self._content(response, asked)
            response.release_conn()
            if response.status == 401 and tries == 1 and self._access.credentials.refused():
                continue
            raise error_of(
                response.status,
                _document(failed),
                asked=asked,
                where=self.where,
                retry_after=response.headers.get("Retry-After"),
            )

    def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None,
        proof: Proof,
        silent_s: float,
        asked: str,
        again: bool,
    ) -> BaseHTTPResponse | None:
        """The head of an answer; None if a kept connection has died and it is worth another try."""
        pool = self._pool_for(proof.certificate)
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError, ProtocolError

        try:
            return pool.request(
                method,
                url,
                body=content,
                headers=headers,
                timeout=Timeout(connect=CONNECT_S, read=silent_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except ProtocolError as error:
            if again:
                return None
            raise self.error(error, asked) from error
        except HTTPError as error:
            raise self.error(error, asked) from error

    def _content(self, response: BaseHTTPResponse, asked: str) -> bytes:
        from urllib3.exceptions import HTTPError

        try:
            content: bytes = response.read(MOST_BYTES + 1, decode_content=True)
        except HTTPError as error:
            raise self.error(error, asked) from error
        if len(content) > MOST_BYTES:
            response.close()
            size = f"more than {MOST_BYTES >> 20} MiB"
            raise Unreachable(f"cannot {asked}: the answer has {size}", where=self.where)
        return content

    def error(self, error: Exception, asked: str) -> PermanentBackendError | Unreachable:
        """The error that an exception of the library stands for.

        Args:
            error: it.
            asked: what was asked, for people.
        """
        hint = "the kubeconfig names the authority and the name that it must have"
        return error_of_exception(error, asked=asked, where=self.where, hint=hint)

    # -- connections ---------------------------------------------------------------------------

    def _pool_for(self, certificate: Certificate | None) -> PoolManager:
        """The connections that show this certificate; those that show another one are closed."""
        with self._lock:
            if self._pool is None or certificate != self._certificate:
                if self._pool is not None:
                    self._pool.clear()
                self._pool = connections(self._access, certificate, self._environment, "kubernetes")
                self._certificate = certificate
            return self._pool


class Stream:
    """An answer that comes line by line. A context manager; one thread, but for :meth:`end`."""

    def __init__(self, response: BaseHTTPResponse, transport: Transport, asked: str) -> None:
        self._response = response
        self._transport = transport
        self._asked = asked
        self._ended = False
        self.date = response.headers.get("Date", "")

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._response.close()

    def lines(self) -> Iterator[bytes]:
        """Yield whole lines until the server, or :meth:`end`, ends the answer. A last one without
        its end is not yielded. Raises ``Unreachable``."""
        from urllib3.exceptions import HTTPError

        rest = b""
        try:
            while True:
                # What there is, and not until so much has come.
                piece = self._response.read1(1 << 16, decode_content=True)
                if not piece:
                    return
                *whole, rest = (rest + piece).split(b"\n")
                yield from whole
                if len(rest) > MOST_LINE_BYTES:
                    text = f"cannot {self._asked}: a line has more than {MOST_LINE_BYTES} bytes"
                    raise Unreachable(text, where=self._transport.where)
        except (HTTPError, OSError, ValueError) as error:
            if self._ended:
                return
            raise self._transport.error(error, self._asked) from error

    def end(self) -> None:
        """End it from another thread, which is waiting for the next line perhaps."""
        self._ended = True
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError):  # it has ended by itself
            pass


def _document(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")
