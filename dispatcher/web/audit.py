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

from dispatcher.errors import PermanentBackendError
from dispatcher.web.faults import RequestRefused
from dispatcher.web.keys import Identity

#: What the server itself says.
_OWN: Final = frozenset({"started", "ended"})

_MOST_BYTES: Final = 5 << 20
_FILES: Final = 3

#: Lines of one kind in a minute that strangers or readers can cause: they must not push what the
#: owner changed out of the log.
_MOST_IN_A_MINUTE: Final = 60


class AuditLog:
    """Writes what was changed and what was refused, and counts answers. Thread: any.

    Args:
        path: of the log; None: counts only.

    Raises:
        PermanentBackendError: it cannot be written there.
    """

    def __init__(self, path: Path | None) -> None:
        self.statuses: Counter[int] = Counter()
        self._log = logging.Logger("bequeath.web")
        if path is not None:
            try:
                path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
                handler = _PrivateHandler(path, maxBytes=_MOST_BYTES, backupCount=_FILES)
            except OSError as error:
                raise PermanentBackendError(
                    f"the log of the page cannot be kept: {error.strerror}", where=str(path)
                ) from error
            handler.setFormatter(_Lines())
            handler.addFilter(_FewOfAKind())
            self._log.addHandler(handler)

    @property
    def log(self) -> logging.Logger:
        """The log, for what a library says of faults."""
        return self._log

    def say(self, what: str, identity: Identity | None, **facts: Any) -> None:
        """Write one line. Of what strangers and readers do there are so many in a minute at most.

        Args:
            what: a word for it.
            identity: the one who did it.
            facts: more of it; nothing secret.
        """
        line = {"at": round(time.time(), 3), "what": what}
        if identity is not None:
            line |= {"who": identity.who, "token": f"…{identity.mark}"}
        is_owner = identity is not None and not identity.share
        kind = "" if is_owner or what in _OWN else what
        self._log.info("", extra={"line": line | facts, "kind": kind})

    def refused(self, scope: Scope, error: RequestRefused) -> None:
        """Write down that a request was refused."""
        client = scope.get("client") or ("",)
        self.say(
            "refused",
            None,
            kind=error.kind.kind,
            method=scope["method"][:20],
            path=str(scope["path"])[:200],
            peer=client[0],
        )

    def answered(self, scope: Scope, status: int) -> None:
        """Count an answer."""
        del scope
        self.statuses[status] += 1


class _FewOfAKind(logging.Filter):
    """Lets so many lines of a kind through in a minute; those without a kind always."""

    def __init__(self) -> None:
        super().__init__()
        self._minute = 0
        self._seen: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        kind = getattr(record, "kind", "fault")  # a library's warning, for whose lines peers ask
        if not kind:
            return True
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._seen = minute, Counter()
        self._seen[kind] += 1
        return self._seen[kind] <= _MOST_IN_A_MINUTE


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
