"""One file of a trial, open: read piece by piece, and let go of however its sending ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from dispatcher.attempt_files import fetching
from dispatcher.experiments.attempts import LocatedTrial
from dispatcher.experiments.view import ExperimentView
from dispatcher.ports import AttemptFiles
from dispatcher.web.faults import RequestRefused


class OpenFile:
    """A file that is read piece by piece, as long as it is the same. Any thread."""

    def __init__(self, located: LocatedTrial, files: AttemptFiles, path: str) -> None:
        self._located = located
        self._files = files
        self._path = path
        self._at = 0
        self._turn = threading.Lock()
        self._closed = False
        first = files.read(path, 0, fetching.CHUNK_BYTES)
        if first is None:
            raise RequestRefused("no-page", f"the attempt has no file {path[:200]!r}")
        self._first: bytes | None = first.data
        self.size = first.size
        self._identity = first.identity

    def next(self) -> bytes | None:
        """Return the next piece; None at the end, or where the file has become another one."""
        with self._turn:
            return None if self._closed else self._next()

    def _next(self) -> bytes | None:
        left = self.size - self._at
        if left <= 0:
            return None
        if self._first is not None:
            data, self._first = self._first[:left], None
        else:
            piece = self._files.read(self._path, self._at, min(left, fetching.CHUNK_BYTES))
            if piece is None or piece.identity != self._identity:
                return None
            data = piece.data
        self._at += len(data)
        return data or None

    def close(self) -> None:
        """Let go of it, when nobody reads any more. Blocks as long as a reading takes."""
        with self._turn:
            if not self._closed:
                self._closed = True
                self._files.close()
                self._located.__exit__(None, None, None)


def close_aside(opened: OpenFile) -> None:
    """Close a file in a thread: a machine elsewhere may be slow, and another thread may read."""
    asyncio.get_running_loop().run_in_executor(None, opened.close)


class FileResponse(StreamingResponse):
    """A file that is let go of however its sending ends, or if it never began."""

    def __init__(
        self, pieces: AsyncIterator[bytes], headers: dict[str, str], opened: OpenFile
    ) -> None:
        super().__init__(pieces, headers=headers, media_type="application/octet-stream")
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            close_aside(self._opened)


def open_file(folder: Path, trial: int, path: str, attempt: int | None) -> OpenFile:
    """Open a file of an attempt: of its machine, else as it was fetched. Blocks.

    Args:
        folder: of the experiment.
        trial: its number.
        path: of the file, below the attempt's folders.
        attempt: its number; None: the newest.
    """
    located = ExperimentView(folder).attempts(trial)
    try:
        shown: Any = located.show_files(located.attempt(attempt))
        try:
            return OpenFile(located, shown.files, path)
        except BaseException:
            shown.files.close()
            raise
    except BaseException:
        located.__exit__(None, None, None)
        raise
