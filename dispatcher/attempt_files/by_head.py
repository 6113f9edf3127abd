"""Files of an attempt that only its agent sees: the head asks it, and we ask the head."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dispatcher.attempt_files.attempt_at import AttemptAt
from dispatcher.codec import UNREADABLE
from dispatcher.control.client import HeadClient
from dispatcher.control.messages import PieceRead
from dispatcher.errors import PassingBackendError, PermanentBackendError, UserError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.platforms.worker_files import AttemptShell
from dispatcher.ports import FileEntry, FileList, FilePiece

#: For an answer: longer than the head waits for one of an agent.
ANSWER_S = 20.0

#: A list of more bytes is none that an agent makes; and how often one is begun anew that changes
#: while it is read.
MOST_LIST_BYTES = 64 << 20
TRIES = 5

#: As much as is asked for at once; a head that takes less gives less.
CHUNK_BYTES = 256 << 10


_NO_FILES = b'{"files": [], "cut": false}'


class FilesByHead:
    """See :class:`dispatcher.ports.AttemptFiles`. The head is asked at the first question.

    Args:
        folder: the experiment's.
        attempt: the attempt.
        platform: of its worker, for people.
        shell: one there; None: the platform opens none.
        gone_is_empty: whether an attempt of which nothing is left has no files; else that is an
            error.
    """

    def __init__(
        self,
        folder: ExperimentFolder,
        attempt: AttemptAt,
        platform: str,
        shell: Callable[[], AttemptShell | None] = lambda: None,
        *,
        gone_is_empty: bool = False,
    ) -> None:
        self._folder = folder
        self._attempt = attempt
        self._platform = platform
        self._shell = shell
        self._gone_is_empty = gone_is_empty
        self._worker = attempt.worker or ""
        self._client: HeadClient | None = None
        self.place = self._worker

    def list(self, below: str = "", *, most: int) -> FileList:
        """See :meth:`dispatcher.ports.AttemptFiles.list`."""
        for _ in range(TRIES):
            text = self._whole_list(below, most)
            if text is None:
                continue
            try:
                answer = json.loads(text)
                entries = [_entry(*each) for each in answer["files"]]
                cut = bool(answer["cut"])
            except (*UNREADABLE, KeyError, TypeError, OverflowError) as error:
                raise PermanentBackendError("lists what are no files", where=self.place) from error
            return FileList(entries[:most], cut or len(entries) > most)
        raise PassingBackendError("its files change faster than they are listed", where=self.place)

    def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
        """See :meth:`dispatcher.ports.AttemptFiles.read`."""
        piece = self.ask(path, offset, min(limit, CHUNK_BYTES), 0)
        if piece.gone:
            return None
        if len(piece.data) > limit:
            raise PermanentBackendError("sends more than was asked for", where=self.place)
        return FilePiece(piece.data, piece.size, piece.version, piece.identity)

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        """See :meth:`dispatcher.ports.AttemptFiles.shell`: the platform's own, since none goes
        over the agent's wire."""
        shell = self._shell()
        if shell is not None:
            return shell.open(command, terminal=terminal)
        raise PermanentBackendError(
            f"bequeath opens no shell on the platform {self._platform!r}",
            hint="its own tools may; 'bequeath trial log' and 'bequeath trial fetch' read what "
            "the trial has left",
            where=self.place,
        )

    def close(self) -> None:
        """Drop the connection to the head."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _whole_list(self, below: str, most: int) -> bytes | None:
        """All of a list; None if it has changed meanwhile."""
        text, version = b"", None
        while True:
            piece = self.ask(below, len(text), CHUNK_BYTES, most)
            if piece.gone and self._gone_is_empty:
                return _NO_FILES
            if piece.gone:
                raise PermanentBackendError(
                    f"nothing is left of attempt {self._attempt.name}: it has written nothing, or "
                    f"what runs as {self._worker} now has begun without its files",
                    hint="what was fetched of it is in the experiment's folder",
                    where=self.place,
                )
            if version not in (None, piece.version):
                return None
            version = piece.version
            text += piece.data
            if len(text) > MOST_LIST_BYTES:
                raise PermanentBackendError("lists too many files", where=self.place)
            if len(text) >= piece.size:
                return text
            if not piece.data:
                return None

    @property
    def name(self) -> str:
        """The attempt, as in ``3.1``."""
        return self._attempt.name

    def ask(self, path: str, offset: int, limit: int, most: int) -> PieceRead:
        """Ask the head once. Raises ``BackendError``.

        Args:
            path: of a file, or what a list is of.
            offset: where the part begins (bytes).
            limit: how many bytes at most.
            most: how many files a list may have; 0 for a file.
        """
        if self._client is None:
            self._client = HeadClient(self._folder.path, timeout_s=ANSWER_S)
        try:
            answer: Any = self._client.ask(
                "read_attempt",
                worker=self._worker,
                trial=self._attempt.trial,
                attempt=self._attempt.number,
                path=os.fsencode(path),
                offset=offset,
                limit=limit,
                most=most,
            )
        except UserError as error:  # of a head that is older than we are, say
            raise PermanentBackendError(
                f"its files cannot be read: {error.message}", where=self.place
            ) from error
        piece = msgspec.convert(answer, PieceRead)
        if piece.trouble:
            raise PassingBackendError(piece.trouble, where=self.place)
        if piece.error:
            raise PermanentBackendError(f"cannot be read: {piece.error}", where=self.place)
        return piece


def _entry(path: Any, size: Any, changed_at: Any, version: Any, link: Any) -> FileEntry:
    if not isinstance(path, str) or type(size) is not int or size < 0:
        raise TypeError("no file")
    at = float(changed_at)
    return FileEntry(path, size, at if math.isfinite(at) else 0.0, str(version), bool(link))
