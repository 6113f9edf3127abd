"""A part of a file of an attempt, asked of its agent for somebody at the command line."""

from __future__ import annotations

from dispatcher.control.messages import PieceRead, ReadArguments
from dispatcher.platforms.agents.file_asks import FileAsks, Wanted
from trial_runtime import wire


class FilesRead:
    """See :class:`dispatcher.control.server.PendingRead`.

    Args:
        files: asks the agent.
        wanted: what is asked for.
    """

    def __init__(self, files: FileAsks, wanted: ReadArguments) -> None:
        self._files = files
        limit = min(wanted.limit, wire.MAX_PIECE_BYTES)
        part = (wanted.path, wanted.offset, limit, wanted.most)
        self._asked = files.ask(Wanted(wanted.trial, wanted.attempt, *part))

    def ready(self) -> bool:
        """See :meth:`PendingRead.ready`."""
        return self._files.settled(self._asked)

    def result(self) -> PieceRead:
        """See :meth:`PendingRead.result`."""
        given = self._asked.given
        if given is None:
            return PieceRead(trouble=self._asked.trouble)
        whole = (given.size, given.version, given.identity)
        return PieceRead(given.data, *whole, given.gone, error=given.error)
