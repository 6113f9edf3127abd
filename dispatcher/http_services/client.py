"""Requests to one service: connections, TLS, proxies, repetition, and answers in JSON, all bounded.

The library's exceptions end here, as errors that say whether asking again helps. No secret is in
their texts.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import msgspec

from dispatcher.errors import BackendError
from dispatcher.http_services.connections import connections
from dispatcher.http_services.errors import (
    NONSENSE,
    Busy,
    NotLoggedIn,
    Unreachable,
    error_of_answer,
    error_of_exception,
    seconds_in,
)
from dispatcher.http_services.server_clock import ServerClock
from dispatcher.http_services.signing import HttpRequest, Signer, TokenSigner
from dispatcher.http_services.token_bucket import TokenBucket

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

#: How long a connection may take (seconds), and each piece of an answer.
CONNECT_S, ANSWER_S = 10.0, 30.0

#: How long a whole answer may take (seconds): pieces of it could come in time for ever.
WHOLE_S = 120.0

#: Largest answer (bytes): a page of a list. So many of it are read, and unpacked, at once.
MOST_BYTES, PIECE_BYTES = 32 << 20, 1 << 16

#: What changes nothing, or comes to the same if it is carried out twice.
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})

#: A longer pause that the service asks for (seconds) is not slept through: who asks is told.
LONGEST_SLEPT_S = 5.0

JSON = "application/json"

#: Shorter words are no secrets: hiding them would spoil texts.
_SHORTEST_SECRET = 8

ErrorOf = Callable[..., BackendError]


@dataclass(frozen=True)
class HttpAddress:
    """See :class:`~dispatcher.http_services.connections.ServerAddress`.

    ``extra``: the one of ours that has the library, for people.
    """

    server: str
    authorities: str = field(default="", repr=False)
    server_name: str = ""
    verified: bool = True
    proxy: str = ""
    origin: str = ""
    extra: str = "http"


@dataclass(frozen=True)
class HttpAnswer:
    """An answer that was no error.

    Attributes:
        status: a number below 300.
        document: what came, from JSON; a text where something else was asked for; None: nothing.
        headers: by their names in lower case.
    """

    status: int
    document: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of the document; none where it has none."""
        return self.document if isinstance(self.document, Mapping) else {}


class HttpClient:
    """Requests to one service. Threads: any.

    Args:
        address: how it is reached.
        signer: says who asks.
        bucket: bounds how often; None: as most services bear it.
        error_of: the error that an answer stands for; takes what :func:`error_of_answer` takes.
        environment: variables that name proxies.
        clock: monotonic seconds.
        sleep: lets time pass (seconds).

    Attributes:
        times: the time as the service has it.
    """

    def __init__(
        self,
        address: HttpAddress,
        signer: Signer | None = None,
        *,
        bucket: TokenBucket | None = None,
        error_of: ErrorOf = error_of_answer,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.times = ServerClock(clock)
        self._address = address
        self._signer: Signer = TokenSigner() if signer is None else signer
        self._bucket = TokenBucket(clock=clock, sleep=sleep) if bucket is None else bucket
        self._error_of = error_of
        self._environment = environment
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._pool: PoolManager | None = None
        self._not_before = float("-inf")  # as it has asked for

    @property
    def where(self) -> str:
        """The service, for people."""
        return urlsplit(self._address.server).netloc.rpartition("@")[2]

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.clear()

    def ask(
        self,
        method: str,
        path: str,
        *,
        asked: str,
        query: Mapping[str, str | int] | None = None,
        body: object = None,
        kind: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
        is_repeatable: bool | None = None,
        secrets: Iterable[str] = (),
        shape: Any = None,
    ) -> HttpAnswer:
        """Ask, and wait for the whole answer.

        Args:
            method: of HTTP.
            path: below the service's address; or a whole address at the same service.
            asked: what is asked, for people, as in "cannot create the job 'a'".
            query: parameters.
            body: of the request: bytes as they are, anything else as JSON; None: it has none.
            kind: the type of the body.
            accept: the type of the answer; anything else than JSON is a text.
            headers: further ones.
            is_repeatable: whether to be carried out twice does no harm; None: by the method.
            secrets: texts of the body that are in no error.
            shape: a type with the fields that are read, as of
                :func:`~dispatcher.http_services.shapes.list_of_objects`: the others are passed
                over, unchecked. An answer of another shape comes whole.

        Raises:
            BackendError: one of :mod:`dispatcher.http_services.errors`.
        """
        own = {"Accept": accept, "User-Agent": "bequeath", **(headers or {})}
        content = b""
        if body is not None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            own["Content-Type"] = kind
        url = self._url(path, asked) + (f"?{urlencode(query)}" if query else "")
        request = HttpRequest(method, url, own, content)
        repeatable = method in REPEATABLE if is_repeatable is None else is_repeatable
        response, came = self._repeated(request, asked, repeatable, tuple(secrets))
        given = {name.lower(): value for name, value in response.headers.items()}
        if accept != JSON:
            return HttpAnswer(response.status, came.decode("utf-8", "replace"), given)
        if not came.strip():
            return HttpAnswer(response.status, None, given)
        try:
            return HttpAnswer(response.status, _read(came, shape), given)
        except ValueError:  # a page of a proxy: what it does not list is not gone
            text = f"cannot {asked}: the answer is no JSON"
            raise Unreachable(text, where=self.where) from None

    def _url(self, path: str, asked: str) -> str:
        """The address of a path, or of a further page that the service has named: one of its own,
        since our token goes there."""
        own = self._address.server
        if not path or path.startswith(("/", "?")):
            return f"{own}{path}"
        try:
            is_own = urlsplit(path)[:2] == urlsplit(own)[:2]
        except ValueError:
            is_own = False
        if not is_own:  # what has no host may be the rest of one: ".elsewhere", "@elsewhere"
            text = f"cannot {asked}: it sends us to another service for the next page"
            raise Unreachable(text, where=self.where)
        return path

    # -- one request, again and again ------------------------------------------------------------

    def _repeated(
        self, request: HttpRequest, asked: str, repeatable: bool, secrets: tuple[str, ...]
    ) -> tuple[BaseHTTPResponse, bytes]:
        """The answer to a request that was no error."""
        pool = self._connected()
        from urllib3.exceptions import HTTPError

        from dispatcher.http_services.patience import patience

        rule, is_renewed = patience(is_repeatable=repeatable), False
        while True:
            self._demand_turn(asked)
            signed = self._signer.headers(request)
            _demand_plain(signed, asked, self.where)
            try:
                response, came = self._once(pool, request, signed, asked)
            except HTTPError as error:
                try:
                    rule = rule.increment(request.method, request.url, error=error)
                except HTTPError:
                    raise self._lost(error, asked) from error
                self._sleep(rule.get_backoff_time())
                continue
            if response.status < 300:
                return response, came
            pause = response.headers.get("Retry-After")
            is_short = seconds_in(pause) <= LONGEST_SLEPT_S
            if is_short and rule.is_retry(request.method, response.status, pause is not None):
                try:
                    rule = rule.increment(request.method, request.url, response=response)
                except HTTPError:
                    pass
                else:
                    self._sleep(max(seconds_in(pause), rule.get_backoff_time()))
                    continue
            own = [word for word in _words_of(signed) if word not in request.url]
            hidden = [word for word in (*secrets, *own) if len(word) >= _SHORTEST_SECRET]
            error_ = self._error(response, came, asked, pause, hidden)
            is_refused = isinstance(error_, NotLoggedIn)  # not all services say so by 401
            if is_refused and not is_renewed and self._signer.refused():
                is_renewed = True
                continue
            raise error_

    def _demand_turn(self, asked: str) -> None:
        """Wait until a request may be sent. Raises ``Busy``: the service wants none for a while."""
        left_s = self._not_before - self._clock()
        if 0 < left_s <= LONGEST_SLEPT_S:
            self._sleep(left_s)
        elif left_s > 0:
            text = f"cannot {asked}: it has asked for a pause, {left_s:.0f} s of which are left"
            raise Busy(text, where=self.where)
        self._bucket.take()

    def _once(
        self, pool: PoolManager, request: HttpRequest, signed: Mapping[str, str], asked: str
    ) -> tuple[BaseHTTPResponse, bytes]:
        from urllib3 import Timeout

        response = pool.request(
            request.method,
            request.url,
            body=request.body or None,
            headers={**request.headers, **signed},
            timeout=Timeout(connect=CONNECT_S, read=ANSWER_S),
            retries=False,
            redirect=False,
            preload_content=False,
        )
        try:
            came = self._whole(response, asked)
        except Unreachable:
            response.close()
            raise
        finally:
            response.release_conn()
        self.times.note(response.headers.get("Date", ""))
        return response, came

    def _whole(self, response: BaseHTTPResponse, asked: str) -> bytes:
        """All of an answer. Raises ``Unreachable``: it is too large, or takes too long."""
        came, until = bytearray(), time.monotonic() + WHOLE_S
        while piece := response.read1(PIECE_BYTES, decode_content=True):
            came += piece
            why = ""
            if len(came) > MOST_BYTES:
                why = f"has more than {MOST_BYTES >> 20} MiB"
            elif time.monotonic() >= until:
                why = f"is not whole after {WHOLE_S:.0f} s"
            if why:
                raise Unreachable(f"cannot {asked}: the answer {why}", where=self.where)
        return bytes(came)

    def _error(
        self,
        response: BaseHTTPResponse,
        came: bytes,
        asked: str,
        pause: str | None,
        hidden: Sequence[str],
    ) -> BackendError:
        """The error that an answer stands for, without any of these texts: they are hidden before
        it is cut anywhere."""
        about: dict[str, Any] = {"asked": asked, "where": self.where, "retry_after": pause}
        try:
            document = _without(_read(came), hidden)
            error = self._error_of(response.status, document, **about)
        except NONSENSE:  # its status says what it is, at least
            error = self._error_of(response.status, None, **about)
        if isinstance(error, Busy) and error.retry_after_s:
            self._not_before = self._clock() + error.retry_after_s
        return error

    def _lost(self, error: Exception, asked: str) -> BackendError:
        hint = "name the file with the certificates of its authority"
        return error_of_exception(error, asked=asked, where=self.where, hint=hint)

    def _connected(self) -> PoolManager:
        with self._lock:
            if self._pool is None:
                extra = self._address.extra
                self._pool = connections(self._address, None, self._environment, extra)
            return self._pool


def _read(content: bytes, shape: Any = None) -> Any:
    """A document of JSON. Raises ``ValueError``, for one that is nested too deeply as well."""
    try:
        if shape is not None:
            with suppress(msgspec.DecodeError):
                return msgspec.json.decode(content, type=shape)
        try:
            return msgspec.json.decode(content)
        except msgspec.DecodeError:  # NaN, a mark of the byte order: slower, and more lenient
            return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _demand_plain(signed: Mapping[str, str], asked: str, where: str) -> None:
    """See that headers can be sent: the library's own error has their values, which are secrets."""
    for name, value in signed.items():
        if not (value.isascii() and value.isprintable()):
            text = f"cannot {asked}: the header {name!r} would have a letter that none can have"
            hint = "does the variable or the file hold the key alone, on one line?"
            raise NotLoggedIn(text, hint=hint, where=where)


def _words_of(signed: Mapping[str, str]) -> list[str]:
    """The words of a signature, which a service may repeat in its answer. Those of an address are
    no secrets: the project that pays, perhaps."""
    return [word for value in signed.values() for word in value.split()]


def _without(document: object, secrets: Sequence[str]) -> object:
    """A document without any of these texts."""
    if isinstance(document, str):
        for secret in secrets:
            document = document.replace(secret, "***")
        return document
    if isinstance(document, list):
        return [_without(each, secrets) for each in document]
    if isinstance(document, dict):
        return {key: _without(value, secrets) for key, value in document.items()}
    return document
