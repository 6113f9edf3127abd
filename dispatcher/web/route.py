"""One route: its method and path, the right it needs, what it takes, and who answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import UserError
from dispatcher.operations.operation import Arguments, NoChoice, Scope
from dispatcher.queries import TrialNotFound
from dispatcher.web.faults import RequestRefused
from dispatcher.web.guard import MOST_BODY
from dispatcher.web.keys import Identity

Endpoint = Callable[[Request], Awaitable[Response]]

#: Seconds in which a body must have come.
BODY_S: Final = 30.0

#: Integers of arguments; what is larger fits in no store.
_MOST: Final = (1 << 63) - 1

_DEEPEST: Final = 64

_TRIAL: Final = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class WebRoute:
    """A route that is in no operation's row.

    Attributes:
        route: method and path below ``/api/v1``.
        summary: one line.
        scope: the right that it needs.
        arguments: the type of its query, or of its body.
        endpoint: answers.
        media: the types of its answers.
        answer: what its JSON holds, for people.
    """

    route: str
    summary: str
    scope: Scope
    endpoint: Endpoint
    arguments: type[Arguments] = NoChoice
    media: tuple[str, ...] = ("application/json",)
    answer: str = ""

    @property
    def method(self) -> str:
        """The method."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path."""
        return self.route.partition(" ")[2]


def identity_of(request: Request) -> Identity:
    """Return who asks, as the guard has found out."""
    identity = request.scope["state"]["identity"]
    assert isinstance(identity, Identity)
    return identity


def demand_scope(request: Request, scope: Scope) -> Identity:
    """Raise ``RequestRefused`` unless the one who asks has a right; return who it is."""
    identity = identity_of(request)
    if scope not in identity.scopes:
        raise RequestRefused(
            "scope",
            f"this link may not {'change anything' if scope is Scope.CHANGE else 'read logs'}",
            hint="its owner has one that may: bequeath web --link"
            if scope is Scope.CHANGE
            else "its owner may make one that does: bequeath web --share NAME --with-logs",
        )
    return identity


def trial_of(request: Request) -> int:
    """Return the number in the path. Raises ``TrialNotFound`` for what is none."""
    text = str(request.path_params["trial"])
    if not _TRIAL.fullmatch(text):
        raise TrialNotFound(f"{text[:50]!r} is no number of a trial")
    return int(text)


async def body_of(request: Request) -> dict[str, Any]:
    """Read the body as a JSON object; without a body an empty one.

    Raises:
        RequestRefused: it is no JSON object, is too large, or does not come.
    """
    value = await any_body_of(request)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RequestRefused("request", "the body is no JSON object")
    return value


async def any_body_of(request: Request) -> Any:
    """Read the body as JSON; None if there is none.

    Raises:
        RequestRefused: it is no JSON, is too large, or does not come.
    """
    data = bytearray()
    if request.headers.get("content-encoding", "identity") != "identity":
        raise RequestRefused("media", "a body comes uncompressed")
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                data += piece
                if len(data) > MOST_BODY:
                    raise RequestRefused("too-large", f"a body has {MOST_BODY:,} bytes at most")
    except TimeoutError:
        raise RequestRefused("request", f"the body did not come within {BODY_S:g} s") from None
    if not data:
        return None
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise RequestRefused("media", "a body is JSON", hint="Content-Type: application/json")
    try:
        return msgspec.json.decode(bytes(data))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RequestRefused("request", f"the body is no JSON: {error}") from error


def query_of(request: Request, kind: type[Arguments]) -> dict[str, Any]:
    """Return the query by name: what may be there several times as a list."""
    several = {
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if getattr(field.type, "__origin__", None) in (tuple, list)
        or "tuple" in str(field.type)
        or "list" in str(field.type)
    }
    values: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in several:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise RequestRefused("request", f"{name!r} is there twice")
        else:
            values[name] = value
    return values


def read_arguments(kind: type[Arguments], values: dict[str, Any], *, texts: bool) -> Any:
    """Read arguments of a type.

    Args:
        kind: their type.
        values: by name.
        texts: whether all values are texts, as of a query.

    Raises:
        UserError: one is unknown, missing, of another type or beyond a bound.
    """
    check_numbers(values)
    try:
        given = msgspec.convert(values, kind, strict=not texts)
    except msgspec.ValidationError as error:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(kind)) or "none"
        raise UserError(f"this cannot be taken: {error}", hint=f"arguments: {known}") from error
    check_numbers(msgspec.to_builtins(given))
    return given


def check_numbers(value: Any, depth: int = 0) -> None:
    """Raise ``UserError`` for integers that no store can hold, and for what nests too deeply."""
    if depth > _DEEPEST:
        raise UserError(f"lists and objects nest more than {_DEEPEST} levels deep")
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        if isinstance(value, int) and abs(value) > _MOST:
            raise UserError("a number is larger than any that can be kept")
        return
    for each in value:
        check_numbers(each, depth + 1)
