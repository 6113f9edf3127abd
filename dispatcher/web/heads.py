"""The line to one head, for all browsers: one connection, which is made anew for the next head."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from dispatcher.control.client import HeadClient, RunFile
from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.errors import DispatcherError, PassingBackendError, UserError

#: Seconds that a head has to answer.
ANSWER_S: Final = 3.0


class HeadLine:
    """Asks the head of one experiment, whichever leads it now. Thread: any, one call at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._client: HeadClient | None = None
        self._token = ""

    def ask(self, folder: Path) -> HeadSnapshot | None:
        """Return the snapshot of the head; None if none answers, or it is somebody else's.

        Args:
            folder: the experiment's, which must be ours.
        """
        with self._lock:
            try:
                return self._connected().snapshot()
            except (PassingBackendError, UserError):
                self._drop()
                return None
            except DispatcherError:
                self._drop()
                raise

    def _connected(self) -> HeadClient:
        run = RunFile.read(self._folder)
        token = "" if run is None else run.token
        if self._client is None or token != self._token:
            self._drop()
            self._client = HeadClient(self._folder, timeout_s=ANSWER_S)
            self._token = token
        return self._client

    def _drop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def close(self) -> None:
        """Drop the connection."""
        with self._lock:
            self._drop()
