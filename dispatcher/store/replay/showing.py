"""A file of all reported metrics, for a tuner host that starts again; written beside the engine.

A million metrics take seconds to read, and the engine must not wait. So another thread reads them,
as of the moment at which they were asked for, and writes a line each; memory stays what it was.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from dispatcher.store.assessed import Assessed
from dispatcher.store.replay.background_write import Beside

#: Lines written at once.
_AT_ONCE = 1_000


class ShownFile:
    """A :class:`~dispatcher.ports.ShownPast` out of a store.

    Args:
        store: the journal's file.
        path: the file to write.
        clock: the journal's, in seconds since the epoch.
    """

    def __init__(self, store: Path, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._unanswered_since: float | None = None
        self._store = store
        self._count = itertools.count()
        self._writing: Beside | None = None

    def forget(self) -> None:
        """See the port."""
        if self._unanswered_since is None:
            self._unanswered_since = self._clock()
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

        def work(writing: Beside) -> None:
            rows = assessed.rows(since)
            with draft.open("wb") as file:
                while lines := [msgspec.json.encode(x) for x in itertools.islice(rows, _AT_ONCE)]:
                    if writing.given_up:
                        return
                    file.write(b"\n".join(lines) + b"\n")

        failing = "what trials have reported cannot be laid down for the tuner"
        self._writing = Beside("shown-past", assessed, draft, self.path, work, failing)
        self._writing.start()

    def check(self) -> None:
        """See the port."""
        if self._writing is not None and self._writing.error is not None:
            raise self._writing.error

    def close(self) -> None:
        """See the port."""
        writing = self._writing
        self.forget()
        if writing is not None:
            writing.end()
