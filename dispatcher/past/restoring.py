"""A tuner that starts again is given its past: its own state, or the calls to repeat."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dispatcher.core.actions import LaunchTuner, TunerAction
from dispatcher.core.events import Event
from dispatcher.past.compacted import read_whole_past
from dispatcher.past.history import Past
from dispatcher.ports import Journal, TunerPort
from dispatcher.store.compaction import Compaction
from trial_runtime.failpoints import failpoint


class RestoringTuner:
    """A :class:`~dispatcher.ports.TunerPort` that lays the restore file beside each launch.

    Args:
        past: what the head has read already, for the first launch: between the two no call of
            the tuner's can have been journalled. Each later launch reads the journal itself.
    """

    def __init__(
        self,
        port: TunerPort,
        journal: Journal,
        compaction: Compaction,
        path: Path,
        past: Past | None = None,
    ) -> None:
        self._port = port
        self._journal = journal
        self._compaction = compaction
        self._path = path
        self._past = past

    def perform(self, action: TunerAction) -> None:
        """As the port does, after writing the file if the tuner is launched."""
        if isinstance(action, LaunchTuner):
            self._write()
        self._port.perform(action)

    def _write(self) -> None:
        snapshot = self._journal.latest_snapshot()
        past, self._past = self._past, None
        if past is None:
            past = read_whole_past(self._journal, self._compaction)
        content = {"state": snapshot.state if snapshot else None, "calls": past.calls}
        draft = self._path.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_bytes(msgspec.msgpack.encode(content))
        past.calls.clear()  # the head holds on to the rest
        failpoint("restore.draft.written")
        draft.replace(self._path)
        failpoint("restore.file.written")

    def flush(self) -> None:
        """See the port."""
        self._port.flush()

    def receive(self, payload: bytes) -> list[Event]:
        """See the port."""
        return self._port.receive(payload)

    def check(self) -> list[Event]:
        """See the port."""
        return self._port.check()

    def close(self, deadline_s: float) -> None:
        """See the port."""
        self._port.close(deadline_s)
