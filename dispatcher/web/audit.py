"""The record of who did what over the page: one line of JSON each, in a log of bounded size."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.types import Scope

from dispatcher.web.faults import RequestRefused
from dispatcher.web.keys import Identity

_MOST_BYTES: Final = 5 << 20
_FILES: Final = 3

#: Refusals that are written down in a minute; more are counted.
_MOST_REFUSALS: Final = 60


class AuditLog:
    """Writes what was changed and what was refused, and counts answers. Thread: any.

    Args:
        path: of the log; None: counts only.
    """

    def __init__(self, path: Path | None) -> None:
        self.statuses: Counter[int] = Counter()
        self._minute = 0
        self._refusals = 0
        self._log = logging.Logger("bequeath.web")
        if path is not None:
            path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            handler = _PrivateHandler(path, maxBytes=_MOST_BYTES, backupCount=_FILES)
            handler.setFormatter(_Lines())
            self._log.addHandler(handler)

    @property
    def log(self) -> logging.Logger:
        """The log, for what a library says of faults."""
        return self._log

    def say(self, what: str, identity: Identity | None, **facts: Any) -> None:
        """Write one line.

        Args:
            what: a word for it.
            identity: the one who did it.
            facts: more of it; nothing secret.
        """
        line = {"at": round(time.time(), 3), "what": what}
        if identity is not None:
            line |= {"who": identity.who, "token": f"…{identity.mark}"}
        self._log.info("", extra={"line": line | facts})

    def refused(self, scope: Scope, error: RequestRefused) -> None:
        """Write down that a request was refused."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._refusals = minute, 0
        self._refusals += 1
        if self._refusals <= _MOST_REFUSALS:
            client = scope.get("client") or ("",)
            self.say(
                "refused",
                None,
                kind=error.kind.kind,
                method=scope["method"],
                path=str(scope["path"])[:200],
                peer=client[0],
            )

    def answered(self, scope: Scope, status: int) -> None:
        """Count an answer."""
        del scope
        self.statuses[status] += 1


class _Lines(logging.Formatter):
    """One line of JSON for each record, also for what a library says."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = getattr(record, "line", None)
        if line is None:
            text = super().format(record)
            line = {"at": round(record.created, 3), "what": "fault", "text": text[:20_000]}
        return msgspec.json.encode(line).decode(errors="replace")


class _PrivateHandler(RotatingFileHandler):
    """A file for us alone, whatever the umask."""

    def _open(self) -> Any:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")
