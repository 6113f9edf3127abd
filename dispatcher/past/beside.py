"""Work on a store that takes seconds, in a thread beside the engine, which has not got them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from dispatcher.errors import BequeathError, StoreError

#: Seconds in which a thread that is told to end does.
END_S = 5.0


class JournalSource(Protocol):
    """What is read: one moment of a store, through a connection of its own."""

    def interrupt(self) -> None:
        """End what is being read. From any thread."""

    def close(self) -> None:
        """Nothing more is read."""


class Beside:
    """One piece of work, which lays down one file.

    Args:
        name: of the thread.
        source: closed when the work is over.
        draft: what the work writes.
        path: what the draft is called then, if it is still wanted.
        work: reads the source and writes the draft.
        failing: what an error of the file system means, in a few words.
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
        self.error: BequeathError | None = None
        self._source = source
        self._draft = draft
        self._path = path
        self._work = work
        self._failing = failing
        self._closed = False
        self._lock = threading.Lock()  # held while the file appears, or is no longer wanted
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def over(self) -> bool:
        """Whether the file is there, or ``error`` says why it is not. From whoever started it."""
        return not self._thread.is_alive()

    def give_up(self) -> None:
        """The file must not appear any more. Waits for nothing but a rename under way."""
        with self._lock:
            self.given_up = True
            if not self._closed:
                self._source.interrupt()

    def end(self) -> None:
        """Give up, and wait for the end of the thread, not for long."""
        self.give_up()
        self._thread.join(END_S)

    def _run(self) -> None:
        try:
            self._draft.touch(mode=0o600)
            self._work(self)
            with self._lock:
                if not self.given_up:
                    self._draft.replace(self._path)
        except (BequeathError, OSError) as error:
            if not self.given_up:
                self.error = (
                    error
                    if isinstance(error, BequeathError)
                    else StoreError(f"{self._failing}: {error}", where=str(self._path))
                )
        finally:
            with self._lock:  # what is closed cannot be interrupted
                self._closed = True
                self._source.close()
            self._draft.unlink(missing_ok=True)
