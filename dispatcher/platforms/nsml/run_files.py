"""The files by which runs say how they are, and hear that they are to end: in the folder that they
share with this machine, each read when it has changed."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from dispatcher.http_services.errors import NONSENSE
from dispatcher.platforms.clusters.nodes import unwritable
from dispatcher.platforms.http_jobs.launching import LEAVE_S
from dispatcher.platforms.nsml import in_run
from dispatcher.platforms.nsml.section import NsmlSection
from trial_runtime.agent.processes.record import write_private

PROGRAM = "in_run.py"


class RunFiles:
    """The files of all runs of a service.

    Args:
        section: the service's part of the file.

    Attributes:
        there: the folder as runs have it.
        stopped: names of runs that are to end.
    """

    def __init__(self, section: NsmlSection) -> None:
        self._folder = Path(section.shared_folder or "/nowhere") / "nsml"
        self.there = section.seen(self._folder)
        self._newest: dict[str, tuple[int, float, dict[str, Any]]] = {}  # when it changed, was read
        self.stopped: set[str] = set()

    def lay(self) -> None:
        """Lay down the program of runs. Raises ``PermanentBackendError``."""
        self._write(PROGRAM, Path(in_run.__file__).read_bytes())

    def stop(self, name: str, grace_s: float) -> None:
        """Have a run end. Raises ``PermanentBackendError``."""
        self._write(f"{name}.stop", f"{grace_s + LEAVE_S:.0f}".encode())
        self.stopped.add(name)

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self._folder / name, content)
        except OSError as error:
            raise unwritable(error, self._folder) from error

    def look(self) -> None:
        """Read what has changed. A file that is half written is read again."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                name, _, kind = entry.name.partition(".")
                changed, _, _ = self._newest.get(name, (0, 0.0, {}))
                if kind == "stop":
                    self.stopped.add(name)
                elif kind or not entry.is_file(follow_symlinks=False):
                    continue
                elif (now := entry.stat().st_mtime_ns) != changed:
                    with contextlib.suppress(OSError, *NONSENSE):
                        state = json.loads(Path(entry).read_text())
                        known: dict[str, Any] = {"word": str(state["word"])}
                        known["seconds"] = float(state["seconds"])
                        known["code"] = None if state["code"] is None else int(state["code"])
                        self._newest[name] = (now, time.monotonic(), known)

    def of(self, name: str) -> tuple[dict[str, Any], float]:
        """Return the newest state of a run, and how long ago that was read (seconds); an empty
        one: it has not begun."""
        _, heard, state = self._newest.get(name, (0, 0.0, {}))
        return state, time.monotonic() - heard
