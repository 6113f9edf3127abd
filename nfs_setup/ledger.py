"""Record of all changes of this machine, to take them back: /var/lib/bequeath/nfs.

An entry is written durably *before* its change is made, with all that undoing it needs; so
whatever moment the power goes, the next run knows what may have been half done. Contents
that are replaced are kept byte for byte, beside the ledger.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host

FOLDER = "/var/lib/bequeath/nfs"
FILE = f"{FOLDER}/ledger.json"

_VERSION = 1


@dataclass
class Entry:
    """One change. ``shared``: other runs of the same verb count on it as well."""

    step: str
    title: str
    data: dict[str, Any]
    shared: bool = False
    done: bool = False


@dataclass
class Run:
    """Changes of one command. ``complete`` is False while it is under way, or died."""

    number: int
    verb: str
    target: str
    entries: list[Entry] = field(default_factory=list)
    complete: bool = False


class Ledger:
    """All runs that have not been undone, the oldest first. Every change is saved at once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.runs: list[Run] = []
        content = host.read(FILE)
        if content is not None:
            self.runs = _parsed(content)

    def begin(self, verb: str, target: str) -> Run:
        """Return a new run; nothing is written before its first entry."""
        number = 1 + max((run.number for run in self.runs), default=0)
        run = Run(number, verb, target)
        self.runs.append(run)
        return run

    def interrupted(self) -> list[Run]:
        """Return the runs that died on their way, the newest first."""
        return [run for run in reversed(self.runs) if not run.complete]

    def save(self) -> None:
        """Write the ledger durably; remove it and its folders once there is nothing to undo."""
        runs = [run for run in self.runs if run.entries]
        if not runs:
            self._clear()
            return
        self._make_folders()
        document = {"version": _VERSION, "runs": [_plain(run) for run in runs]}
        self._host.write(FILE, json.dumps(document, indent=1).encode() + b"\n", 0o600)

    def keep(self, content: bytes) -> str:
        """Keep a content byte for byte. Returns the name to ask for it by."""
        name = hashlib.sha256(content).hexdigest()
        if self._host.read(f"{FOLDER}/{name}") != content:
            self._make_folders()
            self._host.write(f"{FOLDER}/{name}", content, 0o600)
        return name

    def kept(self, name: str) -> bytes:
        """Return the content that was kept under a name.

        Raises:
            MachineRefuses: if somebody removed or changed it.
        """
        content = self._host.read(f"{FOLDER}/{name}")
        if content is None or hashlib.sha256(content).hexdigest() != name:
            raise MachineRefuses(
                "the copy of what was there before is gone or changed",
                where=f"{FOLDER}/{name}",
                hint="put it back from a backup of this machine",
            )
        return content

    def _make_folders(self) -> None:
        for folder, mode in (("/var/lib/bequeath", 0o755), (FOLDER, 0o700)):
            if self._host.stat(folder) is None:
                self._host.make_folder(folder, mode)

    def _clear(self) -> None:
        if self._host.stat(FOLDER) is None:
            return
        for name in self._host.names(FOLDER):
            self._host.remove(f"{FOLDER}/{name}")
        if self._host.remove_folder(FOLDER):
            self._host.remove_folder("/var/lib/bequeath")


def _plain(run: Run) -> dict[str, Any]:
    return {
        "number": run.number,
        "verb": run.verb,
        "target": run.target,
        "complete": run.complete,
        "entries": [_plain_entry(entry) for entry in run.entries],
    }


def _plain_entry(entry: Entry) -> dict[str, Any]:
    """Return an entry as the file has it, which has called its title ``words`` from the start."""
    return {{"title": "words"}.get(name, name): value for name, value in vars(entry).items()}


def _entry_of(plain: dict[str, Any]) -> Entry:
    values = dict(plain)
    return Entry(title=values.pop("words"), **values)


def _parsed(content: bytes) -> list[Run]:
    problem: str | None = None
    try:
        document = json.loads(content)
        if document["version"] == _VERSION:
            return [
                Run(
                    number=int(run["number"]),
                    verb=str(run["verb"]),
                    target=str(run["target"]),
                    entries=[_entry_of(entry) for entry in run["entries"]],
                    complete=bool(run["complete"]),
                )
                for run in document["runs"]
            ]
        problem = f"is of version {document['version']}, which this bequeath does not know"
    except (ValueError, KeyError, TypeError) as error:
        problem = f"cannot be read: {error}"
    raise MachineRefuses(problem, where=FILE, hint="nothing was changed; look at it by hand")
