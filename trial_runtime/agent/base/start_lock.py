"""The lock of one start of an agent: an engine that starts the same pod twice starts one agent."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from hashlib import blake2s
from pathlib import Path


class StartLock:
    """Holds the lock until the process ends.

    It is a record lock, since those are not inherited: what the agent forked may outlive it for a
    moment. Each ticket has a file of its own: the next allocation of a worker does not wait for the
    file server to notice that the node of the last one is lost. The files of agents that were
    killed are removed by the next one that starts.

    Args:
        home: the agent's folder, which may be on a network disk.
        worker: its name.
        ticket: the secret of this start.
    """

    def __init__(self, home: Path, worker: str, ticket: str) -> None:
        digest = blake2s(ticket.encode(), digest_size=4).hexdigest()
        self._path = home / f"agent-{worker}.{digest}.lock"
        self._of_worker = re.compile(rf"agent-{re.escape(worker)}\.[0-9a-f]{{8}}\.lock")
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Take it; false if another process has it. Where files cannot be locked, nobody has it.

        Raises:
            OSError: the file cannot be made.
        """
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o600)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in (errno.EAGAIN, errno.EACCES)
        self._remove_leftovers()
        return True

    def remove(self) -> None:
        """Remove its file, which is of no use when its agent is over."""
        self._path.unlink(missing_ok=True)

    def _remove_leftovers(self) -> None:
        """Remove this worker's files of other tickets that no process has locked."""
        for name in os.listdir(self._path.parent):
            if name == self._path.name or not self._of_worker.fullmatch(name):
                continue
            path = self._path.with_name(name)
            with contextlib.suppress(OSError):  # it is locked, gone, or cannot be locked at all
                descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink(missing_ok=True)
                finally:
                    os.close(descriptor)
