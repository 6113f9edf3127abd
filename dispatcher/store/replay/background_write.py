"""Work on a store that takes seconds, in a thread beside the engine, which has not got them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from dispatcher.errors import DispatcherError, StoreError

#: Seconds to wait for the end of a thread that was asked to end.
END_S = 5.0


class JournalSource(Protocol):
    """One moment of a store to read, through a connection of its own."""

    def interrupt(self) -> None:
        """End what is being read. From any thread."""

    def close(self) -> None:
        """Close it: nothing more is read."""


class Beside:
    """One piece of work in a thread, which writes one file.

    Args:
        name: the thread's.
        source: closed when the work is over.
        draft: the file that the work writes.
        path: the final name of the draft, if it is still wanted then.
        work: reads the source and writes the draft.
        failing: the message of an error of the file system, without its cause.
    """

    def __init__(
        self,
        name: str,
        source: JournalSource,
        draft: Path,
        path: Path,
        work: Callable[[Beside], None],
        failing: str,
    ) -> None:
        self.given_up = False
        self.error: DispatcherError | None = None
        self._source = source
        self._draft = draft
        self._path = path
        self._work = work
        self._failing = failing
        self._closed = False
        self._lock = threading.Lock()  # held while the file appears, or is no longer wanted
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def over(self) -> bool:
        """Whether the file is there, or ``error`` says why it is not. From the starting thread."""
        return not self._thread.is_alive()

    def give_up(self) -> None:
        """See that the file does not appear any more. Waits for nothing but a rename under way."""
        with self._lock:
            self.given_up = True
            if not self._closed:
                self._source.interrupt()

    def end(self) -> None:
        """Give up, and wait some seconds for the end of the thread."""
        self.give_up()
        self._thread.join(END_S)

    def _run(self) -> None:
        try:
            self._draft.touch(mode=0o600)
            self._work(self)
            with self._lock:
                if not self.given_up:
                    self._draft.replace(self._path)
        except (DispatcherError, OSError) as error:
            if not self.given_up:
                self.error = (
                    error
                    if isinstance(error, DispatcherError)
                    else StoreError(f"{self._failing}: {error}", where=str(self._path))
                )
        finally:
            with self._lock:  # what is closed cannot be interrupted
                self._closed = True
                self._source.close()
            self._draft.unlink(missing_ok=True)
