"""Tracebacks for authors: with their frames, without ours."""

from __future__ import annotations

import os
import sys
import traceback
from types import FrameType

from trial_runtime.cells import in_cells, name_cells

_DISPATCHER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OURS = tuple(os.path.join(_DISPATCHER, room, "") for room in ("tuner_host", "tuner_tools"))

#: Longer texts are cut in the middle: a recursion error has a thousand equal lines.
MAX_CHARS = 16_000


def describe(error: BaseException) -> str:
    """The traceback of an exception from author's code, trimmed of our frames.

    The last line names the exception and its message.
    """
    whole = traceback.TracebackException.from_exception(error, limit=-200)
    _trim(whole, set())
    name_cells(whole, error)
    return shorten(in_cells("".join(whole.format()).rstrip()))


def stack_of(frame: FrameType, limit: int = 40) -> list[traceback.FrameSummary]:
    """The stack of a thread, outermost call first, trimmed of our frames."""
    stack = traceback.extract_stack(frame, limit=limit)
    return [line for line in stack if not is_ours(line.filename) and not _starts(line)]


def is_ours(filename: str) -> bool:
    """Whether a file belongs to the tuner host, or to a tool that calls tuners as it does."""
    return filename.startswith(_OURS)


def shorten(text: str) -> str:
    """Cut a long text in the middle."""
    if len(text) <= MAX_CHARS:
        return text
    half = MAX_CHARS // 2
    return f"{text[:half]}\n  … {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def _trim(whole: traceback.TracebackException, seen: set[int]) -> None:
    if id(whole) in seen:
        return
    seen.add(id(whole))
    kept = [line for line in whole.stack if not is_ours(line.filename)]
    if kept:  # a SyntaxError or a wrong number of arguments has no line of the author's
        whole.stack = traceback.StackSummary.from_list(kept)
    else:
        whole.stack = traceback.StackSummary()
    for linked in (whole.__cause__, whole.__context__):
        if linked is not None:
            _trim(linked, seen)
    if sys.version_info >= (3, 11) and whole.exceptions:
        for inner in whole.exceptions:
            _trim(inner, seen)


def _starts(line: traceback.FrameSummary) -> bool:
    return line.filename == threading_file and line.name in ("_bootstrap", "_bootstrap_inner")


threading_file = sys.modules["threading"].__file__ or "" if "threading" in sys.modules else ""
