"""Files of attempts on a shared folder, beside which there is no shell: Ray opens none there."""

from __future__ import annotations

from collections.abc import Sequence

from dispatcher.errors import PermanentBackendError
from dispatcher.ports import AttemptFiles, FileList, FilePiece


class FilesOfActor:
    """See :class:`dispatcher.ports.AttemptFiles`.

    Args:
        files: they themselves, read here.
        folder: where nodes have them, too.
        worker: whose attempt it is.
    """

    def __init__(self, files: AttemptFiles, folder: str, worker: str) -> None:
        self._files = files
        self._folder = folder
        self._worker = worker
        self.place = files.place

    def list(self, below: str = "", *, most: int) -> FileList:
        """See :meth:`dispatcher.ports.AttemptFiles.list`."""
        return self._files.list(below, most=most)

    def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
        """See :meth:`dispatcher.ports.AttemptFiles.read`."""
        return self._files.read(path, offset, limit)

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        """Raise ``PermanentBackendError`` with what to do by hand."""
        raise PermanentBackendError(
            "bequeath opens no shell on a node of Ray",
            hint="'ray list actors --filter state=ALIVE' names the node of its actor; log in there "
            f"('kubectl exec' with KubeRay), and: cd {self._folder}",
            where=self._worker,
        )

    def close(self) -> None:
        """See :meth:`dispatcher.ports.AttemptFiles.close`."""
        self._files.close()
