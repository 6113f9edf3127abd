"""NNI's own page, from wherever the package is installed. No part of it is ours."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import re
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from dispatcher.errors import UserError
from dispatcher.nni.rest.settings import EndpointSettings
from dispatcher.web.faults import RequestRefused

#: The folder of the page's files within the package, and in what package.
_PACKAGE: Final = "nni_node"
_STATIC: Final = "static"

_INLINE: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)

#: Bytes of its first file, which is read whole.
_MOST_INDEX: Final = 1 << 20

#: It would keep the page of one experiment for the next that is shown at this port.
_WITHHELD: Final = frozenset({"service-worker.js"})

_KINDS: Final = {
    ".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".png": "image/png",
    ".svg": "image/svg+xml", ".gif": "image/gif", ".ico": "image/x-icon", ".ttf": "font/ttf",
    ".woff": "font/woff", ".woff2": "font/woff2", ".json": "application/json",
}  # fmt: skip


def installed_page(given: Path | None) -> Path | None:
    """Return the folder of NNI's page.

    Args:
        given: that folder, or one of an environment or of packages that has NNI in it; None: that
            of the package in this environment, if there is one.

    Raises:
        UserError: the folder that was given has none.
    """
    if given is None:
        found = importlib.util.find_spec(_PACKAGE)
        places = list(found.submodule_search_locations or ()) if found is not None else []
        candidates = [Path(place) / _STATIC for place in places]
    else:
        whole = given.expanduser().resolve()
        deeper = whole.glob(f"lib/python3*/site-packages/{_PACKAGE}/{_STATIC}")
        candidates = [whole, whole / _STATIC, whole / _PACKAGE / _STATIC, *deeper]
    for folder in candidates:
        if (folder / "index.html").is_file() and (folder / "asset-manifest.json").is_file():
            return folder
    if given is None:
        return None
    raise UserError(
        "NNI's page is not there",
        hint="name the environment into which you installed it: pip install nni==3.0",
        where=str(given),
    )


class Portal:
    """Answers with the files of that page, or a word on where to have it from."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        self._folder = settings.page
        self._index = b""
        if settings.page is not None:
            with (settings.page / "index.html").open("rb") as file:
                self._index = file.read(_MOST_INDEX)
        self._policy = _policy(self._index)

    async def answer(self, request: Request) -> Response:
        """Answer with a file, or with the page."""
        path = str(request.path_params["path"])
        if path.startswith(("api/", "logs/")) or (self._folder is None and path):
            raise RequestRefused("no-page", "there is nothing at this address")
        if self._folder is None:
            return Response(self._without(), media_type="text/plain; charset=utf-8")
        if not path or path == "index.html" or "." not in path.rpartition("/")[2]:
            headers = {"Content-Security-Policy": self._policy}
            return Response(self._index, headers=headers, media_type="text/html; charset=utf-8")
        kind = _KINDS.get(Path(path).suffix)
        try:
            file = (self._folder / path).resolve()
            known = file.is_relative_to(self._folder) and file.is_file() and kind is not None
        except (OSError, ValueError):  # a name that no file can have
            known = False
        if not known or path in _WITHHELD:
            raise RequestRefused("no-page", "there is nothing at this address")
        headers = {"Cache-Control": "private, no-cache", "Content-Security-Policy": self._policy}
        return FileResponse(file, headers=headers, media_type=kind)

    def _without(self) -> str:
        return (
            f"NNI's REST of the experiment {self._settings.folder.name} answers here.\n\n"
            "NNI's own page is shown too where NNI is installed:\n"
            "  python -m venv ENVIRONMENT && ENVIRONMENT/bin/pip install nni==3.0\n"
            f"  bequeath nni serve {self._settings.folder.name} --page ENVIRONMENT\n\n"
            "bequeath's own page shows more: bequeath web\n"
        )


def _policy(index: bytes) -> str:
    """Return what the page may load: nothing of other machines, and no script that stands in what
    a trial wrote, but its own one in its first file."""
    digests = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"
        for text in _INLINE.findall(index)
    ]
    scripts = " ".join(["'self'", *digests])
    return (
        f"default-src 'none'; script-src {scripts}; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
        "connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'; base-uri 'self'; "
        "form-action 'self'; frame-ancestors 'self'"
    )
