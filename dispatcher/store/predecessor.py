"""The end of a head that was taken over and holds a lock that its successor needs.

Fencing needs no death: what an older head still wants to write is refused. There is one thing
that it can keep from us, SQLite's write lock, if it was stopped in the middle of a commit.
Then it is ended, and only if it is proven to be that very head: its number, the moment it
started, and the lock file that was replaced, open in it.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from dispatcher.store.lock_file import FileId, file_id
from trial_runtime.process_start import start_time


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The head whose lock file was replaced."""

    pid: int
    started: str
    lock: FileId

    def end(self) -> bool:
        """SIGKILL it; false, and nothing done, unless it is proven to be that head."""
        if not hasattr(os, "pidfd_open"):
            return False  # without it, its number may be another's when the signal goes out
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            if not self._is_there():
                return False
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True

    def _is_there(self) -> bool:
        return bool(self.started) and start_time(self.pid) == self.started and self._holds_lock()

    def _holds_lock(self) -> bool:
        folder = f"/proc/{self.pid}/fd"
        try:
            names = os.listdir(folder)
        except OSError:
            return False
        for name in names:
            try:
                if file_id(f"{folder}/{name}") == self.lock:
                    return True
            except OSError:
                continue
        return False
