"""Errors of the server itself, beside those of operations, and the answer to any error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.responses import Response

from dispatcher.errors import DispatcherError, UserError
from dispatcher.operations.faults import ErrorKind, Failure, fault_of, problem_of

#: By name, for scripts: what the server refuses before an operation is asked for.
REFUSALS: Final[dict[str, ErrorKind]] = {
    one.kind: one
    for one in (
        ErrorKind("request", 3, 400, "the request cannot be read"),
        ErrorKind("no-token", 3, 401, "no token or cookie, or one that does not count any more"),
        ErrorKind("host", 3, 403, "the page does not go by this host name"),
        ErrorKind("origin", 3, 403, "the request comes from another site"),
        ErrorKind("user", 3, 403, "the connection is another user's (ports of NNI's REST only)"),
        ErrorKind("scope", 3, 403, "the token has not the right for this"),
        ErrorKind("no-page", 3, 404, "there is nothing at this address"),
        ErrorKind("method", 3, 405, "the address does not take this method"),
        ErrorKind("changed", 3, 409, "it is not as `If-Match` says; read it again"),
        ErrorKind("too-large", 3, 413, "the body, or what is asked for, is too large"),
        ErrorKind("media", 3, 415, "the body is not JSON"),
        ErrorKind("range", 3, 416, "the range lies behind the end"),
        ErrorKind("too-many", 4, 429, "the server has as much to do as it takes; try again"),
    )
}

#: Seconds after which a client may try again.
RETRY_AFTER_S: Final = 2


class RequestRefused(UserError):
    """Raised where the server itself refuses a request.

    Args:
        kind: a key of :data:`REFUSALS`.
        message: what is wrong.
        hint: what to do about it.
        headers: what else the answer says.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = REFUSALS[kind]
        self.headers = dict(headers or {})


def answer_to(error: DispatcherError) -> Response:
    """Return the answer to an error: its parts as JSON, and its status."""
    headers: dict[str, str] = {}
    problem = problem_of(error)
    status = fault_of(error).status
    if isinstance(error, RequestRefused):
        headers, status = error.headers, error.kind.status
        problem = msgspec.structs.replace(problem, kind=error.kind.kind)
    if status in (429, 503):
        headers = {"Retry-After": str(RETRY_AFTER_S)} | headers
    return Response(msgspec.json.encode(Failure(problem)), status, headers, "application/json")


def in_a_header(texts: list[str]) -> str:
    """Return sentences as one header: JSON in plain letters, cut where it is long."""
    return json.dumps([text[:300] for text in texts[:5]])
