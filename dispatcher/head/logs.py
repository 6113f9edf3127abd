"""The head's log: structured lines in a bounded, rotated file.

Warnings of the packages below the head (``logging``, below ``bequeath``) come into it as well, and
so do not appear, unmasked and over the picture, on the terminal.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

#: Bytes of one log file, and how many old ones are kept.
LOG_BYTES = 10 << 20
LOGS_KEPT = 3

#: Characters of one text in a line; a text of a tuner may be longer.
LINE_CHARACTERS = 16_384

#: Above the loggers of all rooms.
ROOMS = "bequeath"

#: The attribute of a record under which the rest of its line lies.
_ABOUT: Final = "bequeath_about"


class HeadLog:
    """Writes lines of JSON: an event, its level and moment, and what belongs to it. Any thread.

    Args:
        logger: takes the lines, with its level and its handlers.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def info(self, event: str, **about: Any) -> None:
        """Write what is worth knowing."""
        self._logger.info(event, extra={_ABOUT: about})

    def warning(self, event: str, **about: Any) -> None:
        """Write what may need somebody."""
        self._logger.warning(event, extra={_ABOUT: about})

    def error(self, event: str, exc_info: Any = None, **about: Any) -> None:
        """Write what went wrong.

        Args:
            event: what happened.
            exc_info: the exception, as ``logging`` takes it.
            about: JSON values by name.
        """
        self._logger.error(event, exc_info=exc_info, extra={_ABOUT: about})


@contextmanager
def head_log(path: Path, level: str, mask: Callable[[str], str] = str) -> Iterator[HeadLog]:
    """A log that writes JSON lines to ``path``, closed at the end of the block.

    Args:
        path: the newest of its files.
        level: as in the experiment file.
        mask: takes out of a text what no line may hold.
    """
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, delay=True
    )
    handler.setFormatter(_JsonLines(mask))
    # Not in the global tree: one per head.
    logger = logging.Logger(f"bequeath.head.{path}", logging.getLevelNamesMapping()[level.upper()])
    logger.addHandler(handler)
    warnings = _Warnings(logger)
    logging.getLogger(ROOMS).addHandler(warnings)
    try:
        yield HeadLog(logger)
    finally:
        logging.getLogger(ROOMS).removeHandler(warnings)
        handler.close()


class _Warnings(logging.Handler):
    """Passes on records of ``logging``; from any thread. Two heads in one process both get them:
    the packages below do not know their head."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logging.WARNING)
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        level = logging.ERROR if record.levelno >= logging.ERROR else logging.WARNING
        room = record.name.rpartition(".")[2]
        about = {_ABOUT: {"text": record.getMessage()}}
        self._logger.log(level, room, exc_info=record.exc_info, extra=about)


class _JsonLines(logging.Formatter):
    """One line of JSON for each record; its texts are masked and bounded."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        super().__init__()
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        line = {"event": record.getMessage(), **getattr(record, _ABOUT, {})}
        line["level"] = record.levelname.lower()
        at = datetime.fromtimestamp(record.created, UTC)
        line["timestamp"] = at.isoformat().replace("+00:00", "Z")
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({name: self._shown(value) for name, value in line.items()}, default=repr)

    def _shown(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = self._mask(value)
        if len(text) <= LINE_CHARACTERS:
            return text
        return f"{text[:LINE_CHARACTERS]}… {len(text) - LINE_CHARACTERS} characters more"
