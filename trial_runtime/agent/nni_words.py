"""What a real NNI in a trial says: the file of metrics that its library writes, read as it grows.

Each record is ``ME``, six digits of length, that many bytes of JSON with a line end. The value is
JSON within JSON since v1.5. The file is read twice a second while the trial runs, and once more
when its process is gone, so that no word of it comes after the end.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from typing import Any

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt, Phase
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.metric_check import metric_fault
from trial_runtime.agent.outbox import Outbox
from trial_runtime.agent.timers import Timers
from trial_runtime.any_metric import any_metric_text
from trial_runtime.api_errors import InvalidMetric

#: Where NNI's library writes, below ``NNI_SYS_DIR``.
METRICS_FILE = os.path.join(".nni", "metrics")

_EVERY_S = 0.5
_MARK, _DIGITS = b"ME", 6

#: What is read at once; a record has at most a million bytes.
_MOST_BYTES = 4 << 20

_log = logging.getLogger("bequeath.agent")


def records(content: bytes) -> Iterator[tuple[Any, int]]:
    """The whole records of a file's content, each with the place where it ends.

    >>> list(records(b'ME000010{"a": 1}' + bytes([10]) + b'ME0000'))
    [({'a': 1}, 18)]
    """
    place, head = 0, len(_MARK) + _DIGITS
    while True:
        start = content.find(_MARK, place)
        digits = content[start + len(_MARK) : start + head]
        if start < 0 or len(digits) < _DIGITS:
            return
        if not digits.isdigit():
            place = start + len(_MARK)
            continue
        end = start + head + int(digits)
        if end > len(content):
            return
        try:
            value = json.loads(content[start + head : end])
        except ValueError:
            value = None
        yield value, end
        place = end


class NniWords:
    """Follows the files of all attempts of an agent. Owned by its loop."""

    def __init__(self, spec: TrialSpec, outbox: Outbox, timers: Timers) -> None:
        self._spec = spec
        self._outbox = outbox
        self._timers = timers
        self._read: dict[tuple[int, int], int] = {}  # bytes of each file

    def follow(self, attempt: Attempt) -> None:
        """Read what is there, and go on until the attempt is over."""
        if attempt.phase is not Phase.RUNNING:
            return
        self._take(attempt)
        again = self._timers.at(time.monotonic() + _EVERY_S, lambda: self.follow(attempt))
        attempt.timers.append(again)
        del attempt.timers[:-8]  # those that have fired

    def last(self, attempt: Attempt) -> None:
        """The process is gone: read the rest."""
        self._take(attempt)
        self._read.pop(attempt.key, None)

    def _take(self, attempt: Attempt) -> None:
        path = os.path.join(attempt.session.folder, METRICS_FILE)
        offset = self._read.get(attempt.key, 0)
        try:
            if os.stat(path).st_size < offset:
                offset = 0  # another process of the trial has begun the file anew
            with open(path, "rb") as file:
                file.seek(offset)
                content = file.read(_MOST_BYTES)
        except OSError:
            return  # nothing was said yet, or nothing ever will be
        taken = 0
        for record, end in records(content):
            taken = end
            if isinstance(record, dict):
                self._relay(attempt, record)
        self._read[attempt.key] = offset + taken

    def _relay(self, attempt: Attempt, record: dict[str, Any]) -> None:
        kind = record.get("type")
        if kind not in ("PERIODICAL", "FINAL"):
            return  # parameters are asked for, which lie in their file
        text = self._text(attempt, record.get("value"))
        if text is None:
            return
        attempt.seq += 1
        trial, number = attempt.trial, attempt.number
        if kind == "FINAL":
            self._outbox.add(wire.FinalRelayed(trial, number, attempt.seq, text), urgent=True)
        elif attempt.metrics < self._spec.max_metrics:
            attempt.metrics += 1
            self._outbox.add(wire.MetricRelayed(trial, number, attempt.seq, text), urgent=False)

    def _text(self, attempt: Attempt, value: Any) -> str | None:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                pass  # of v1.4 and before: the text itself
        limit = self._spec.max_metric_bytes
        try:
            text = any_metric_text(value, limit=limit)
        except InvalidMetric as error:
            _log.warning("%r reports %s", attempt, error)
            return None
        fault = "a result that is not finite" if text is None else ""
        fault = fault or metric_fault(text or "", limit, any_value=True)
        if fault:
            _log.warning("%r reports %s, which is left out", attempt, fault)
            return None
        return text
