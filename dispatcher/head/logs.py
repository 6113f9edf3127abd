"""The head's log: structured lines in a bounded, rotated file.

Warnings of the packages below the head (``logging``, below ``bequeath``) come into it as well, and
so do not appear, unmasked and over the picture, on the terminal.
"""

from __future__ import annotations

import logging
import logging.handlers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import structlog

#: Bytes of one log file, and how many old ones are kept.
LOG_BYTES = 10 << 20
LOGS_KEPT = 3

#: Characters of one text in a line; a text of a tuner may be longer.
LINE_CHARACTERS = 16_384

#: Above the loggers of all rooms.
ROOMS = "bequeath"


@contextmanager
def head_log(
    path: Path, level: str, mask: Callable[[str], str] = str
) -> Iterator[structlog.typing.FilteringBoundLogger]:
    """A logger that writes JSON lines to ``path``, closed at the end of the block.

    Args:
        path: the newest of its files.
        level: as in the experiment file.
        mask: takes out of a text what no line may hold.
    """
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, delay=True
    )
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.Logger(f"bequeath.head.{path}")  # not in the global tree: one per head
    logger.addHandler(handler)
    numeric = {"debug": 10, "info": 20, "warning": 30, "error": 40}[level]
    wrapped: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        logger,
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            partial(_masked, mask),
            _bounded,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(numeric),
    )
    warnings = _Warnings(wrapped)
    logging.getLogger(ROOMS).addHandler(warnings)
    try:
        yield wrapped
    finally:
        logging.getLogger(ROOMS).removeHandler(warnings)
        handler.close()


class _Warnings(logging.Handler):
    """Passes on records of ``logging``; from any thread. Two heads in one process both get them:
    the packages below do not know their head."""

    def __init__(self, log: structlog.typing.FilteringBoundLogger) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        log = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        room = record.name.rpartition(".")[2]
        log(room, text=record.getMessage(), exc_info=record.exc_info or None)


def _masked(
    mask: Callable[[str], str],
    _logger: object,
    _method: str,
    line: structlog.typing.EventDict,
) -> structlog.typing.EventDict:
    return {name: mask(text) if isinstance(text, str) else text for name, text in line.items()}


def _bounded(
    _logger: object, _method: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    for name, text in line.items():
        if isinstance(text, str) and len(text) > LINE_CHARACTERS:
            more = len(text) - LINE_CHARACTERS
            line[name] = f"{text[:LINE_CHARACTERS]}… {more} characters more"
    return line
