"""Answers as bytes: JSON, compressed where the client takes it, with a tag, in pieces."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_encoder: Final = msgspec.json.Encoder()

#: Bytes below which nothing is compressed, and of one piece of an answer.
_LEAST_BYTES: Final = 1_024
PIECE_BYTES: Final = 64 << 10

#: Levels of gzip, for answers that are made for each who asks, and for those that all get.
_QUICKLY: Final = 1
THOROUGHLY: Final = 6


def encoded(value: Any) -> bytes:
    """Return a value as JSON; numbers that JSON does not have become null."""
    return _encoder.encode(value)


def tag_of(body: bytes) -> str:
    """Return an entity tag for a body."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def takes_gzip(request: Request) -> bool:
    """Whether the client takes compressed answers."""
    given = request.headers.get("accept-encoding", "")
    return "gzip" in [each.partition(";")[0].strip() for each in given.split(",")]


def compressed(body: bytes, level: int = _QUICKLY) -> bytes:
    """Compress a body, each time to the same bytes.

    Args:
        body: of an answer.
        level: of gzip, 1 to 9.
    """
    return gzip.compress(body, level, mtime=0)


def is_known(request: Request, tag: str) -> bool:
    """Whether the client has what this tag stands for."""
    given = request.headers.get("if-none-match", "")
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in given.split(","))


class PiecesResponse(Response):
    """A body that is sent in pieces, so that one who reads slowly is noticed between them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        body = bytes(self.body)
        for at in range(0, max(1, len(body)), PIECE_BYTES):
            more = at + PIECE_BYTES < len(body)
            piece = body[at : at + PIECE_BYTES]
            await send({"type": "http.response.body", "body": piece, "more_body": more})


def answer(
    request: Request,
    body: bytes,
    *,
    tag: str = "",
    media: str = "application/json",
    headers: Mapping[str, str] | None = None,
    small: bytes | None = None,
) -> Response:
    """Return the answer to a request that reads.

    Args:
        request: the request.
        body: all of the answer.
        tag: of what is answered; made from the body if empty.
        media: the type of the body.
        headers: further ones.
        small: the body, compressed already.
    """
    tag = tag or tag_of(body)
    all_headers = {
        "ETag": tag,
        "Cache-Control": "private, no-cache",
        "Vary": "Accept-Encoding",
        **(headers or {}),
    }
    if is_known(request, tag):
        return Response(status_code=304, headers=all_headers)
    if len(body) >= _LEAST_BYTES and takes_gzip(request):
        body = compressed(body) if small is None else small
        all_headers["Content-Encoding"] = "gzip"
    return PiecesResponse(body, headers=all_headers, media_type=media)
