"""The files of attempts on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.files.whereabouts import Whereabouts
from dispatcher.ports import FileEntry, FileList, FilePiece
from dispatcher.remote_python.on_host import files, shell


class LocalFiles:
    """See :class:`dispatcher.ports.AttemptFiles`."""

    place = "this machine"

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._whereabouts = whereabouts

    def list(self, below: str = "", *, most: int) -> FileList:
        """See :meth:`dispatcher.ports.AttemptFiles.list`."""
        listed = files.listed(self._whereabouts.for_files(), below, most)
        return FileList([FileEntry(*each) for each in listed["files"]], listed["cut"])

    def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
        """See :meth:`dispatcher.ports.AttemptFiles.read`."""
        try:
            head, data = files.piece(self._whereabouts.for_files(), path, offset, limit)
        except OSError as error:
            raise PermanentBackendError(f"cannot be read: {error.strerror}", where=path) from error
        return FilePiece(data, **head) if head else None

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        """See :meth:`dispatcher.ports.AttemptFiles.shell`; it shares our terminal."""
        del terminal
        whereabouts: dict[str, Any] = self._whereabouts.for_shell()
        try:
            environment, folder = shell.surroundings(whereabouts)
        except shell.FolderGone as error:
            attempt = f"{self._whereabouts.trial}.{self._whereabouts.attempt}"
            raise PermanentBackendError(
                f"nothing is left of attempt {attempt}: no {error}"
            ) from error
        argv = shell.command_line(list(command), environment)
        # A handler and not SIG_IGN, which the command would inherit: Ctrl-C is for it alone.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            done = subprocess.run(argv, env=environment, cwd=folder, check=False)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            os.write(2, f"bequeath: {argv[0]}: {error.strerror}\n".encode(errors="replace"))
            return shell.NO_COMMAND if gone else shell.NOT_RUNNABLE
        finally:
            signal.signal(signal.SIGINT, before)
        return done.returncode if done.returncode >= 0 else 128 - done.returncode

    def close(self) -> None:
        """Do nothing: nothing is open."""
