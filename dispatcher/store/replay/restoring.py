"""A tuner that starts again is given its past: its own state, or the calls to repeat."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dispatcher.core.actions import LaunchTuner, TunerAction
from dispatcher.core.events import Event
from dispatcher.ports import Journal, TunerPort
from dispatcher.store.compaction import Compaction
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.background_write import Beside
from dispatcher.store.replay.folding import read_whole_past
from dispatcher.store.replay.history import Past
from trial_runtime.failpoints import failpoint


class RestoringTuner:
    """A :class:`~dispatcher.ports.TunerPort` that writes the restore file before each launch.

    Args:
        port: the tuner's.
        journal: read for a launch without ``past`` and ``store``.
        compaction: of that journal.
        path: the restore file.
        past: the past that the head has read already, for the first launch: between the two no
            call of the tuner's can have been journalled. Later launches read the journal.
        store: the journal's file, for later launches: read in a thread of its own, so that the
            engine does not wait; the launch is put off for as long. None: ``journal`` is read.
    """

    def __init__(
        self,
        port: TunerPort,
        journal: Journal,
        compaction: Compaction,
        path: Path,
        past: Past | None = None,
        *,
        store: Path | None = None,
    ) -> None:
        self._port = port
        self._journal = journal
        self._compaction = compaction
        self._path = path
        self._past = past
        self._store = store
        self._reading: Beside | None = None

    def perform(self, action: TunerAction) -> None:
        """See the port. Writes the file first if the tuner is launched."""
        if not isinstance(action, LaunchTuner):
            self._port.perform(action)
            return
        past, self._past = self._past, None
        if past is None and self._store is not None:
            self._reading = _read_beside(self._store, self._path)
            return
        if past is None:
            past = read_whole_past(self._journal, self._compaction)
        _write(self._draft, self._journal, past)
        self._draft.replace(self._path)
        self._launch()

    def _launch(self) -> None:
        failpoint("restore.file.written")
        self._port.perform(LaunchTuner())

    @property
    def _draft(self) -> Path:
        return self._path.with_suffix(".new")

    def flush(self) -> None:
        """See the port."""
        self._port.flush()

    def receive(self, payload: bytes) -> list[Event]:
        """See the port."""
        return self._port.receive(payload)

    def check(self) -> list[Event]:
        """See the port. Launches the tuner once its past is read.

        Raises:
            StoreError: the past cannot be read, or not be written.
        """
        reading = self._reading
        if reading is not None and reading.over():
            self._reading = None
            if reading.error is not None:
                raise reading.error
            self._launch()
            self._port.flush()
        return self._port.check()

    def close(self, deadline_s: float) -> None:
        """See the port."""
        if self._reading is not None:
            self._reading.end()
        self._port.close(deadline_s)


def _read_beside(store: Path, path: Path) -> Beside:
    journal = SqliteJournal.at_this_moment(store)
    draft = path.with_suffix(".new")

    def work(_: Beside) -> None:
        _write(draft, journal, read_whole_past(journal, Compaction(journal)))

    failing = "the results of the tuner cannot be written down for it"
    reading = Beside("restored-past", journal, draft, path, work, failing)
    reading.start()
    return reading


def _write(draft: Path, journal: Journal, past: Past) -> None:
    snapshot = journal.latest_snapshot()
    content = {"state": snapshot.state if snapshot else None, "calls": past.calls}
    draft.touch(mode=0o600)
    draft.write_bytes(msgspec.msgpack.encode(content))
    past.calls.clear()  # the head holds on to the rest
    failpoint("restore.draft.written")
