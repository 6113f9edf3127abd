"""Values of metrics in lines of text or of JSON: lines in, values out.

The forms are those that Katib's collectors read: ``name=value`` or what regular expressions with
two groups find, after a time stamp if there is one; or an object of JSON in each line, as
``hypertune`` writes them, too.
"""

from __future__ import annotations

import json
import math
import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from types import FrameType
from typing import Any, NamedTuple, Optional, Protocol

#: The longest line that is looked at (bytes).
MOST_LINE = 64 << 10

#: Names under which a line says its step, the first one first.
STEPS = ("global_step", "step", "epoch")

#: The most that the filters of a file may take for one line (seconds of a processor).
FILTER_S = 0.05

_ENDS = re.compile(rb"[\r\n]+")

#: Colours and the like, which programs write for terminals.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

_BLANK = frozenset(" \t\f\r")
_OF_NAMES = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_|-")
_NUMBER = re.compile(r"[+-]?\d*(?:\.\d+)?(?:[Ee][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf(?:inity)?)\b", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII
)


class Measured(NamedTuple):
    """The values that one line has.

    ``values``: names and their values in the order of the line; None for one that is not finite.
    ``step``: that of the line, if it names one. ``at``: its time (seconds since 1970), likewise.
    """

    values: Sequence[tuple[str, Optional[float]]]
    step: Optional[int] = None
    at: Optional[float] = None


class FilterTooSlow(Exception):
    """Raised when filters of a file need too long for one line."""


class LineReader(Protocol):
    """Finds values in a line."""

    def read(self, line: bytes) -> Optional[Measured]:
        """Return what a line says; None if nothing. Raises :class:`FilterTooSlow`."""
        ...


class LineSplitter:
    """Whole lines of a stream that comes in pieces; a carriage return ends a line, too.

    A line that is longer than :data:`MOST_LINE` is left out.

    Args:
        mentions: a line that has none of these texts is passed over; all are kept if empty.
    """

    def __init__(self, mentions: Sequence[bytes] = ()) -> None:
        self._mentions = tuple(mentions)
        self._rest = bytearray()
        self._skipping = False
        self.too_long = 0  # lines that were left out

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece."""
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
        whole = self._begun(piece[:end]) if end else b""
        self._keep(piece[end:])
        if not whole or not self._is_of_interest(whole):
            return []
        lines = [line for line in _ENDS.split(whole) if line and self._is_of_interest(line)]
        short = [line for line in lines if len(line) <= MOST_LINE]
        self.too_long += len(lines) - len(short)
        return short

    def rest(self) -> list[bytes]:
        """The last line, which nothing ended."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [rest] if rest and self._is_of_interest(rest) else []

    def begin_anew(self) -> None:
        """Forget the beginning of a line."""
        self._rest, self._skipping = bytearray(), False

    def _begun(self, piece: bytes) -> bytes:
        """A piece that ends with a line, with what was kept of its first line."""
        if self._skipping:
            self._skipping = False
            return piece[_ENDS.search(piece).start() :]  # type: ignore[union-attr]
        whole = bytes(self._rest) + piece
        self._rest = bytearray()
        return whole

    def _keep(self, piece: bytes) -> None:
        if self._skipping or not piece:
            return
        self._rest += piece
        if len(self._rest) > MOST_LINE:
            self._rest, self._skipping = bytearray(), True
            self.too_long += 1

    def _is_of_interest(self, text: bytes) -> bool:
        return not self._mentions or any(one in text for one in self._mentions)


def named_values(line: str) -> Iterator[tuple[str, str]]:
    """Yield names and values as Katib's own filter finds them, in time that grows with the length.

    That filter is ``([\\w|-]+)\\s*=\\s*([+-]?\\d*(\\.\\d+)?([Ee][+-]?\\d+)?)``; a line of word
    characters alone costs it the square of its length. ``nan`` and ``inf`` are values, too.

    >>> list(named_values("epoch 3: loss=0.25, acc = 9.1e-1"))
    [('loss', '0.25'), ('acc', '9.1e-1')]
    """
    place = 0
    while True:
        sign = line.find("=", place)
        if sign < 0:
            return
        end = sign
        while end > place and line[end - 1] in _BLANK:
            end -= 1
        start = end
        while start > place and line[start - 1] in _OF_NAMES:
            start -= 1
        after = sign + 1
        if start == end:
            place = after
            continue
        while after < len(line) and line[after] in _BLANK:
            after += 1
        match = _NUMBER.match(line, after)
        assert match is not None  # it matches nothing at all, too
        word = _NOT_FINITE.match(line, after)
        yield line[start:end], (word or match)[0]
        place = match.end()


class TextLines:
    """Reads lines of text.

    Args:
        names: of the metrics that are looked for.
        filters: regular expressions with two groups, for a name and a value; none: Katib's own.
    """

    def __init__(self, names: Sequence[str], filters: Sequence[str] = ()) -> None:
        self._names = frozenset(names)
        self._filters = [re.compile(one, re.ASCII) for one in filters]

    def read(self, line: bytes) -> Optional[Measured]:
        """See :class:`LineReader`."""
        text = line.decode("utf-8", "replace")
        if "\x1b" in text:
            text = _CONTROL.sub("", text)
        values: list[tuple[str, Optional[float]]] = []
        steps: dict[str, int] = {}
        for name, value in self._pairs(text):
            if name in self._names:
                number, is_one = number_of(value)
                if is_one:
                    values.append((name, number))
            elif name in STEPS and _WHOLE.fullmatch(value):
                steps[name] = int(value)
        if not values:
            return None
        return Measured(values, _first_step(steps), moment_of(text.partition(" ")[0]))

    def _pairs(self, text: str) -> Sequence[tuple[str, str]]:
        if not self._filters:
            return list(named_values(text))
        with _bounded(FILTER_S):
            return [
                ((match[1] or "").strip(), (match[2] or "").strip())
                for one in self._filters
                for match in one.finditer(text)
            ]


class JsonLines:
    """Reads lines that are objects of JSON; values are numbers, or texts of numbers.

    Args:
        names: of the metrics that are looked for.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    def read(self, line: bytes) -> Optional[Measured]:
        """See :class:`LineReader`."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(record, dict):
            return None
        values = []
        for name in self._names:
            number, is_one = number_of(record.get(name))
            if is_one:
                values.append((name, number))
        if not values:
            return None
        texts = {name: str(record.get(name)) for name in STEPS if name not in self._names}
        steps = {name: int(text) for name, text in texts.items() if _WHOLE.fullmatch(text)}
        return Measured(values, _first_step(steps), moment_of(record.get("timestamp")))


def number_of(value: Any) -> tuple[Optional[float], bool]:
    """The number that a value is, and whether it is one; None for one that is not finite.

    >>> number_of("0.5"), number_of("NaN"), number_of("high")
    ((0.5, True), (None, True), (None, False))
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None, False
    try:
        number = float(value)
    except ValueError:
        return None, False
    except OverflowError:
        return None, True
    return (number if math.isfinite(number) else None), True


def moment_of(value: Any) -> Optional[float]:
    """The moment that a time stamp names (seconds since 1970): a number, or RFC 3339.

    >>> moment_of("1970-01-01T01:00:02.5+01:00"), moment_of("yesterday")
    (2.5, None)
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number, _ = number_of(value)
        return number
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    zone = match[8]
    try:
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    hours, minutes = (0, 0) if zone == "Z" else (int(zone[:3]), int(zone[0] + zone[4:]))
    away = timedelta(hours=hours, minutes=minutes)
    return moment.timestamp() + float(match[7] or 0) - away.total_seconds()


def _first_step(steps: dict[str, int]) -> Optional[int]:
    return next((steps[name] for name in STEPS if name in steps), None)


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Give up after so much time of a processor; in the main thread only, as signals go there.

    The regular expressions of a file may need longer than anybody waits, and the loop that runs
    them serves all trials of the host. Python's own matcher looks for signals as it goes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(_number: int, _frame: Optional[FrameType]) -> None:
        raise FilterTooSlow

    before = signal.signal(signal.SIGVTALRM, give_up)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if before is None else before)
