"""The output of an attempt that is followed while its agent may go: what the agent hands in at the
end goes on where its files have ended."""

from __future__ import annotations

from collections.abc import Sequence

from dispatcher.attempt_files.attempt_at import AttemptAt, kept_here
from dispatcher.attempt_files.fetched import Fetched, logs_are_kept
from dispatcher.errors import BackendError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.ports import AttemptFiles, FileList, FilePiece
from trial_runtime.retry import Retry

#: What was handed in is written within this time (seconds) after an attempt's end is known.
KEPT_S = 3.0


class FilesElseKept:
    """See :class:`dispatcher.ports.AttemptFiles`.

    Once the agent cannot be asked and the ends of its logs are here, they alone are read. Offsets
    stay those of the agent's files for who has begun with them.

    Args:
        there: the files by their agent.
        here: those in the experiment's folder.
        folder: of the experiment.
        attempt: the attempt.
        kept_s: how long logs are waited for that may just be written (seconds).
    """

    def __init__(
        self,
        there: AttemptFiles,
        here: AttemptFiles,
        folder: ExperimentFolder,
        attempt: AttemptAt,
        kept_s: float = KEPT_S,
    ) -> None:
        self._there = there
        self._here = here
        self._folder = folder
        self._attempt = attempt
        self._kept_s = kept_s
        self.place = there.place
        self._record: Fetched | None = None  # once the agent is asked no more
        self._identities: dict[str, str] = {}  # of the agent's files as they were read last
        self._origins: dict[str, int] = {}  # the offset of the first byte that is here

    def list(self, below: str = "", *, most: int) -> FileList:
        """See :meth:`dispatcher.ports.AttemptFiles.list`."""
        if self._record is None:
            try:
                return self._there.list(below, most=most)
            except BackendError as error:
                self._turn_to_kept(error)
        listed = self._here.list(below, most=most)
        if not self._identities:  # who begins with this list knows no other offsets
            self._origins = {each.path: 0 for each in listed.entries}
        return listed

    def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
        """See :meth:`dispatcher.ports.AttemptFiles.read`."""
        if self._record is None:
            try:
                piece = self._there.read(path, offset, limit)
            except BackendError as error:
                self._turn_to_kept(error)
            else:
                if piece is not None:
                    self._identities[path] = piece.identity
                return piece
        return self._read_here(path, offset, limit)

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        """See :meth:`dispatcher.ports.AttemptFiles.shell`."""
        return self._there.shell(command, terminal=terminal)

    def close(self) -> None:
        """See :meth:`dispatcher.ports.AttemptFiles.close`."""
        self._there.close()
        self._here.close()

    def _turn_to_kept(self, error: BackendError) -> None:
        """Read what is here from now on. Raises the error if it is not, nor within a moment."""
        tries = Retry(0.05, 0.5)
        while not logs_are_kept(self._folder, self._attempt):
            if not tries.pause(self._kept_s):
                raise error
        folder = kept_here(self._folder, self._attempt)
        self._record = Fetched.read(folder, self._attempt.name)
        self.place = self._here.place

    def _read_here(self, path: str, offset: int, limit: int) -> FilePiece | None:
        assert self._record is not None
        identity = self._record.files.get(path, "").partition("-")[0]
        if path not in self._origins:
            if self._identities.get(path, identity) != identity:
                # The file that was read last has another name by now, and is gone.
                self._identities[path] = identity
                return FilePiece(b"", offset, "", identity)
            # Behind a place that is not here the first byte that is follows at once.
            self._origins[path] = min(offset, self._record.begins.get(path, 0))
        origin = self._origins[path]
        piece = self._here.read(path, max(0, offset - origin), limit)
        if piece is None:
            return None
        known = self._identities.get(path, piece.identity)
        return piece._replace(size=piece.size + origin, identity=known)
