"""A tuner host that starts again asks what its trials have reported: a file of it, beside all else.

A million metrics take seconds to read, which the engine has not. So another thread reads them, as
of the moment at which they were asked for, and writes a line each; memory stays what it was.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from dispatcher.errors import BequeathError, StoreError
from dispatcher.store.assessed import Assessed

#: Lines written at once.
_AT_ONCE = 1_000

#: Seconds in which a thread that is told to end does.
_END_S = 5.0


class ShownFile:
    """A :class:`~dispatcher.ports.ShownPast` out of a store.

    Args:
        store: the journal's file.
        path: where the file is to lie.
        clock: that of the journal, in seconds since the epoch.
    """

    def __init__(self, store: Path, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._unanswered_since: float | None = None
        self._store = store
        self._count = itertools.count()
        self._writing: _Writing | None = None

    def forget(self) -> None:
        """See the port."""
        if self._unanswered_since is None:
            self._unanswered_since = self._clock()
        self._clear()

    def _clear(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.give_up()
        for old in (self.path, *self.path.parent.glob(f"{self.path.name}.*")):
            old.unlink(missing_ok=True)

    def write(self) -> None:
        """See the port."""
        self.forget()
        since, self._unanswered_since = self._unanswered_since, None
        assert since is not None
        draft = self.path.with_name(f"{self.path.name}.{next(self._count)}")
        assessed = Assessed.at_this_moment(self._store)
        self._writing = _Writing(assessed, since, draft, self.path)
        self._writing.thread.start()

    def check(self) -> None:
        """See the port."""
        if self._writing is not None and self._writing.error is not None:
            raise self._writing.error

    def close(self) -> None:
        """See the port."""
        writing = self._writing
        self._clear()
        if writing is not None:
            writing.thread.join(_END_S)


class _Writing:
    """One file under way."""

    def __init__(
        self, assessed: Assessed, unanswered_since: float, draft: Path, path: Path
    ) -> None:
        self._assessed = assessed
        self._unanswered_since = unanswered_since
        self._draft = draft
        self._path = path
        self._given_up = self._over = False
        self._lock = threading.Lock()  # held while the file appears, or is no longer wanted
        self.error: BequeathError | None = None
        self.thread = threading.Thread(target=self._run, name="shown-past", daemon=True)

    def give_up(self) -> None:
        """The file must not appear any more. Waits for nothing but a rename under way."""
        with self._lock:
            self._given_up = True
            if not self._over:
                self._assessed.interrupt()

    def _run(self) -> None:
        try:
            self._write()
        except (BequeathError, OSError) as error:
            if not self._given_up:
                told = f"what trials have reported cannot be laid down for the tuner: {error}"
                self.error = StoreError(told, where=str(self._path))
        finally:
            with self._lock:  # what is closed cannot be interrupted
                self._over = True
                self._assessed.close()
            self._draft.unlink(missing_ok=True)

    def _write(self) -> None:
        self._draft.touch(mode=0o600)
        rows = self._assessed.rows(self._unanswered_since)
        with self._draft.open("wb") as file:
            while lines := [msgspec.json.encode(one) for one in itertools.islice(rows, _AT_ONCE)]:
                if self._given_up:
                    return
                file.write(b"\n".join(lines) + b"\n")
        with self._lock:
            if not self._given_up:
                self._draft.replace(self._path)
