"""The store of an experiment that is read for as long as somebody asks, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dispatcher.errors import ExperimentNotFound
from dispatcher.folders.names import STORE_NAME
from dispatcher.folders.ownership import demand_ours
from dispatcher.queries import ExperimentReader


class FollowedStore:
    """Opens a store, and opens it again if another is in its place. Thread: one at a time.

    Args:
        folder: the experiment's.
        forget: called where all that was read so far counts no more.
    """

    def __init__(self, folder: Path, forget: Callable[[], None]) -> None:
        self._folder = folder
        self._forget = forget
        self._reader: ExperimentReader | None = None
        self._file = (0, 0)

    def opened(self) -> ExperimentReader:
        """Return the reader of the store that is there now. Blocks on the disk.

        Raises:
            ExperimentNotFound: it is gone.
            NotOurs: it is somebody else's.
        """
        try:
            info = (self._folder / STORE_NAME).stat()
        except OSError as error:
            self.close()
            raise ExperimentNotFound(
                f"the experiment {self._folder.name} is gone", where=str(self._folder)
            ) from error
        if self._reader is None or self._file != (info.st_dev, info.st_ino):
            self.close()
            demand_ours(self._folder)
            self._reader = ExperimentReader.open(self._folder)
            self._file = (info.st_dev, info.st_ino)
        return self._reader

    def close(self) -> None:
        """Close it, and have what was read forgotten."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None
        self._forget()
