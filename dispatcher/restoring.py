"""A tuner that starts again is given its past: its own state, or the calls to repeat."""

from __future__ import annotations

from pathlib import Path

import msgspec

from dispatcher.core.actions import LaunchTuner, TunerAction
from dispatcher.core.events import Event
from dispatcher.history import tuner_calls
from dispatcher.ports import Journal, TunerPort
from trial_runtime.failpoints import failpoint


class RestoringTuner:
    """A :class:`~dispatcher.ports.TunerPort` that lays the restore file beside each launch."""

    def __init__(self, port: TunerPort, journal: Journal, path: Path) -> None:
        self._port = port
        self._journal = journal
        self._path = path

    def perform(self, action: TunerAction) -> None:
        """As the port does, after writing the file if the tuner is launched."""
        if isinstance(action, LaunchTuner):
            self._write()
        self._port.perform(action)

    def _write(self) -> None:
        snapshot = self._journal.latest_snapshot()
        calls = tuner_calls(self._journal.rows(), snapshot.number if snapshot else 0)
        past = {"state": snapshot.state if snapshot else None, "calls": calls}
        draft = self._path.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_bytes(msgspec.msgpack.encode(past))
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
