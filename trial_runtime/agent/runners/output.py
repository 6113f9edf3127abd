"""The pipes through which attempts print, and the files they end in."""

from __future__ import annotations

import os

from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.base.logs import PUMP_BYTES, LogFile, make_pipe
from trial_runtime.agent.base.loop import Watch
from trial_runtime.agent.config import TrialSpec

STREAMS = ("stdout", "stderr")


class Outputs:
    """Opens, pumps and closes the output of attempts, in the agent's loop.

    Args:
        spec: the bounds of the files.
        watch: of the agent's loop.
        ending: of the names of the files, for one of several nodes.
    """

    def __init__(self, spec: TrialSpec, watch: Watch, ending: str = "") -> None:
        self._spec = spec
        self._watch = watch
        self._ending = ending

    def log_file(self, attempt: Attempt, stream: str) -> LogFile:
        """The file of one stream; made on disk when something is written."""
        return LogFile(
            f"{attempt.session.folder}/{stream}{self._ending}",
            max_bytes=self._spec.max_log_bytes,
            max_files=self._spec.max_log_files,
            tap=attempt.taps.get(stream),
        )

    def open(self, attempt: Attempt) -> tuple[int, int]:
        """Pipes for a process of its own; returns the ends to give away (and to close here)."""
        ends = []
        for stream in STREAMS:
            read_end, write_end = make_pipe()
            file = self.log_file(attempt, stream)
            attempt.outputs.append((read_end, file))
            if stream == "stderr":
                attempt.stderr = file
            self._watch.add(read_end, self._pump(attempt, read_end, file))
            ends.append(write_end)
        return ends[0], ends[1]

    def finish(self, attempt: Attempt) -> None:
        """Read the rest of the pipes and close them, also if a process still holds them."""
        for read_end, file in list(attempt.outputs):
            # A killed writer left at most what the pipe holds: one round takes it.
            file.pump(read_end, PUMP_BYTES)
            self._close(attempt, read_end, file)

    def _pump(self, attempt: Attempt, read_end: int, file: LogFile):  # type: ignore[no-untyped-def]
        def pump() -> None:
            if not file.pump(read_end):
                self._close(attempt, read_end, file)

        return pump

    def _close(self, attempt: Attempt, read_end: int, file: LogFile) -> None:
        self._watch.remove(read_end)
        os.close(read_end)
        file.close()
        attempt.outputs.remove((read_end, file))
