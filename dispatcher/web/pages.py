"""The page's files: one document for all of its addresses, and what it loads."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import PermanentBackendError
from dispatcher.web.answering import THOROUGHLY, answer, compressed, tag_of
from dispatcher.web.faults import RequestRefused

#: Addresses that the page itself knows.
_PAGES: Final = re.compile(
    r"/|/leaderboard|/settings|/e/[^/]{1,200}(/(trials|lineage|waits|hosts|plots|compare|checks)|/t/[0-9]{1,15})?"
)

_ASSET: Final = re.compile(
    r"([A-Za-z0-9_-][A-Za-z0-9_.-]{0,80}/){0,4}[A-Za-z0-9_-][A-Za-z0-9_.-]{0,80}"
)

_MEDIA: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".json": "application/json",
}

_MOST_BYTES: Final = 4 << 20

_INDEX: Final = "index.html"

_DOCUMENT: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">{more}<title>bequeath</title></head>
<body>{body}</body></html>
"""

_SIGN_IN: Final = """<h1>bequeath</h1>
<p>This page is for whoever started it. Open it by a link that counts once. This prints one:</p>
<pre>bequeath web --link</pre>"""

_NO_PAGE: Final = """<h1>bequeath</h1>
<p>The page is not part of this installation. The interface for scripts is at
<a href="api/v1/openapi.json">api/v1/openapi.json</a>.</p>"""


def is_page(path: str) -> bool:
    """Whether an address is one of the page's, for people."""
    return _PAGES.fullmatch(path) is not None or path == "/login"


def document(body: str, more: str = "") -> bytes:
    """Return a small document of ours.

    Args:
        body: markup, with texts of others made harmless.
        more: markup for its head.
    """
    return _DOCUMENT.format(body=body, more=more).encode()


def passing_page(target: str) -> Response:
    """Return a page that leads on: from there on the browser knows that it comes from us, and
    sends its cookie, which it does not after a link of somebody else's."""
    there = html.escape(target, quote=True)
    more = f'<meta http-equiv="refresh" content="0; url={there}">'
    body = f'<p><a href="{there}">bequeath</a></p>'
    return Response(document(body, more), media_type="text/html; charset=utf-8")


def sign_in_page(headers: Headers) -> Response:
    """Return the page for a browser that has no cookie, or has not sent it.

    Args:
        headers: of the request.
    """
    if headers.get("sec-fetch-site") == "cross-site":
        return passing_page("")  # the same address again, this time from here
    body = document(_SIGN_IN)
    return Response(body, 401, {"WWW-Authenticate": "Bearer"}, "text/html; charset=utf-8")


class _Asset(NamedTuple):
    tag: str
    body: bytes
    small: bytes
    changed: int


class Assets:
    """The page's files, read once, and again when they have changed.

    Args:
        folder: where they lie.
        prefix: the path below which a proxy shows the page.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix
        self._known: dict[str, _Asset] = {}

    def index(self) -> Response:
        """Return the document for all addresses of the page."""
        try:
            text = (self._folder / _INDEX).read_text()
        except FileNotFoundError:
            body = document(_NO_PAGE, f'<base href="{self._prefix}/">')
        else:
            body = with_base(text, self._prefix).encode()
        return Response(body, media_type="text/html; charset=utf-8")

    def asset(self, request: Request, path: str) -> Response:
        """Return one file.

        Raises:
            RequestRefused: there is none.
        """
        media = _MEDIA.get(Path(path).suffix)
        if media is None or not _ASSET.fullmatch(path):
            raise RequestRefused("no-page", "the page has no such file")
        known = self._read(path)
        response = answer(request, known.body, tag=known.tag, media=media, small=known.small)
        response.headers["Cache-Control"] = "no-cache"
        return response

    def _read(self, path: str) -> _Asset:
        file = self._folder / path
        try:
            info = file.stat()
            known = self._known.get(path)
            if known is None or known.changed != info.st_mtime_ns:
                body = file.read_bytes()[:_MOST_BYTES]
                known = _Asset(tag_of(body), body, compressed(body, THOROUGHLY), info.st_mtime_ns)
                self._known[path] = known
            return known
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise RequestRefused("no-page", "the page has no such file") from None
        except OSError as error:
            raise PermanentBackendError(
                f"a file of the page cannot be read: {error.strerror}", where=str(file)
            ) from error


def with_base(text: str, prefix: str) -> str:
    """Put the prefix into the document, by which the page finds its files."""
    base = f'<base href="{html.escape(prefix, quote=True)}/">'
    text = re.sub(r"<base [^>]*>\n?", "", text, count=1)
    head = re.search(r"<head[^>]*>", text)
    place = head.end() if head is not None else 0
    return f"{text[:place]}\n{base}{text[place:]}"
