"""The one process beside a head that feeds its sinks: started, looked at, ended; never waited for.

The engine does not know of it, and nothing here speaks with it: it reads the store.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.logs import HeadLog
from dispatcher.sinks import FEEDS
from trial_runtime.opening import open_regular

#: Seconds between two starts: a process that ends at once would be started for ever.
AGAIN_S: Final = 30.0

#: Seconds that it gets at the end of the experiment; after that it is left to finish by itself.
END_S: Final = 10.0

#: Bytes of its log; a longer one begins anew with the next process.
_MOST_LOG: Final = 1 << 20


class SinkProcess:
    """Feeds the sinks of one experiment. All methods in the head's own thread.

    Args:
        folder: the experiment's.
        wanted: whether its file names sinks; else nothing is started.
        log: the head's.
    """

    def __init__(
        self,
        folder: ExperimentFolder,
        log: HeadLog,
        *,
        wanted: bool,
    ) -> None:
        self._folder = folder
        self._log = log
        self._wanted = wanted
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = -AGAIN_S

    @property
    def pid(self) -> int | None:
        """The number of the process that was started last; None if none was, or it was closed."""
        return None if self._process is None else self._process.pid

    def watch(self) -> None:
        """Start it if it does not run and was not started a moment ago. Returns at once."""
        if not self._wanted or time.monotonic() - self._started_at < AGAIN_S:
            return
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            self._log.warning("the sinks' process ended", exit_code=code)
        self._started_at = time.monotonic()
        try:
            self._process = self._spawned()
        except OSError as error:
            self._process = None
            self._log.warning("the sinks' process cannot be started", error=str(error))

    def _spawned(self) -> subprocess.Popen[bytes]:
        log = open_regular(str(self._folder.sinks_log), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        root = str(Path(__file__).resolve().parents[2])
        before = os.environ.get("PYTHONPATH")
        path = os.pathsep.join(filter(None, (before, root)))
        command = [sys.executable, "-P", "-m", "dispatcher.cli", "sink", FEEDS]
        # The mask is inherited: one that is asked to end while it begins would give nothing.
        before_it = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            if os.fstat(log).st_size > _MOST_LOG:
                os.ftruncate(log, 0)
            return subprocess.Popen(
                [*command, str(self._folder.path)],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before_it)
            os.close(log)

    def close(self) -> None:
        """Ask it to give what is there, and to end; leave it to that after a while."""
        process, self._process = self._process, None
        self._wanted = False
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._log.warning("the sinks' process is left to finish", pid=process.pid)
            process.returncode = 0  # nobody waits for it: it is not ours to reap any more
