"""Reads what programs print or write while they run, and reports what it says.

What they print is seen in passing, as the agent moves it from their pipes to their logs; a file is
looked at twice a second, and less often where that costs much. All of it happens in the agent's
loop, so it is bounded: lines, bytes at once, time of a filter, reports in a second and in all. The
rest is read when the process is gone; its final result is reported where it ended well.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from trial_runtime.agent.attempt import Attempt, Phase
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import MetricsSpec, TrialSpec
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.programs.lines import (
    MOST_LINE,
    FilterTooSlow,
    JsonLines,
    LineReader,
    LineSplitter,
    TextLines,
)
from trial_runtime.agent.programs.metrics_file import FilePart, MetricsFile, RewrittenLines
from trial_runtime.agent.programs.places import metrics_path
from trial_runtime.agent.programs.results import ProgramResults
from trial_runtime.agent.trials.bounds import Allowance
from trial_runtime.api_errors import InvalidMetric
from trial_runtime.metric import metric_text

_EVERY_S = 0.5

#: The pause before the next look is at least so many times as long as the last one took.
_PAUSES_PER_LOOK = 20

#: Bytes of a file in one look, and in all when the process is gone; of more only the end is read.
_LOOK_BYTES = 256 << 10
_LAST_BYTES = 4 << 20
_END_BYTES = 1 << 20

#: A filter that is too slow so often is not asked again by the same attempt.
_SLOW_LINES = 3

_log = logging.getLogger("bequeath.agent")


class _Followed:
    """One attempt, as far as it is read."""

    def __init__(self, attempt: Attempt, spec: TrialSpec, metrics: MetricsSpec) -> None:
        names = (metrics.objective, *metrics.also)
        mentions = [] if _is_json(metrics) else [name.encode() for name in names]
        self.attempt = attempt
        self.results = ProgramResults(metrics)
        self.reader: LineReader = TextLines(names, metrics.filters)
        if _is_json(metrics):
            self.reader = JsonLines(names)
        self.streams = {stream: LineSplitter(mentions) for stream in metrics.streams}
        self.lines = LineSplitter(mentions)  # of the file
        self.rewritten = RewrittenLines() if _is_json(metrics) else None
        path = metrics_path(metrics, attempt)
        self.file = MetricsFile(path) if path else None
        self.allowance = Allowance(float(spec.max_message_rate), time.monotonic())
        self.left_out = 0  # intermediate results
        self.slow = 0  # lines for which the filters took too long
        self.passed_over = 0  # bytes of the file


def _is_json(metrics: MetricsSpec) -> bool:
    return metrics.hypertune or metrics.format == "json"


class ProgramReports:
    """See :class:`trial_runtime.agent.runners.trial_dialect.Overheard`. Owned by the agent's loop.

    Args:
        spec: the caps on what trials report.
        metrics: what is read, and which value counts.
        reports: takes the results.
        timers: of the agent's loop.
    """

    def __init__(
        self, spec: TrialSpec, metrics: MetricsSpec, reports: Reports, timers: Timers
    ) -> None:
        self._spec = spec
        self._metrics = metrics
        self._reports = reports
        self._timers = timers
        self._followed: dict[tuple[int, int], _Followed] = {}

    def taps(self, attempt: Attempt) -> dict[str, Callable[[bytes], None]]:
        """See :meth:`Overheard.taps`."""
        one = self._followed[attempt.key] = _Followed(attempt, self._spec, self._metrics)
        return {
            stream: partial(self._printed, one, splitter)
            for stream, splitter in one.streams.items()
        }

    def follow(self, attempt: Attempt) -> None:
        """See :meth:`Overheard.follow`."""
        one = self._followed.get(attempt.key)
        if one is None or one.file is None or attempt.phase is not Phase.RUNNING:
            return
        begun = time.monotonic()
        read = self._look(one, one.file)
        now = time.monotonic()
        pause_s = max(0.0 if read >= _LOOK_BYTES else _EVERY_S, _PAUSES_PER_LOOK * (now - begun))
        attempt.timers.append(self._timers.at(now + pause_s, lambda: self.follow(attempt)))
        del attempt.timers[:-8]  # those that have fired

    def last(self, attempt: Attempt) -> None:
        """See :meth:`Overheard.last`."""
        one = self._followed.pop(attempt.key, None)
        if one is None:
            return
        for splitter in one.streams.values():
            self._read(one, splitter.rest())
        if one.file is not None:
            self._read_rest(one, one.file)
            one.file.close()
        why_none = ""
        outcome = attempt.exit
        ended_well = outcome is not None and outcome.code == 0 and attempt.stop_reason is None
        if ended_well and not attempt.has_final:
            value = one.results.final()
            if value is not None:
                self._reports.final(attempt, self._text(value))
            else:
                why_none = one.results.why_none
        self._remark(one, why_none)

    def forget(self, attempt: Attempt) -> None:
        """See :meth:`Overheard.forget`."""
        one = self._followed.pop(attempt.key, None)
        if one is not None and one.file is not None:
            one.file.close()

    # -- inside --------------------------------------------------------------------------------

    def _printed(self, one: _Followed, splitter: LineSplitter, piece: bytes) -> None:
        self._read(one, splitter.feed(piece))

    def _look(self, one: _Followed, file: MetricsFile) -> int:
        """Read the next part of a file; returns how many bytes it had."""
        part = file.read(_LOOK_BYTES)
        if part.content:
            self._read(one, self._new_lines(one, part))
        return len(part.content)

    def _new_lines(self, one: _Followed, part: FilePart) -> list[bytes]:
        if part.anew:
            one.lines.begin_anew()
            if one.rewritten is not None:
                one.rewritten.begin_anew()
        lines = one.lines.feed(part.content)
        return lines if one.rewritten is None else list(one.rewritten.new_of(lines))

    def _read_rest(self, one: _Followed, file: MetricsFile) -> None:
        left = _LAST_BYTES
        while left > 0 and (read := self._look(one, file)):
            left -= read
        if left <= 0:
            one.passed_over = file.skip(_END_BYTES)
            if one.passed_over:
                one.lines.begin_anew()
            for _ in range(_END_BYTES // _LOOK_BYTES):  # what writes on has no end
                self._look(one, file)
        self._read(one, one.lines.rest())

    def _read(self, one: _Followed, lines: list[bytes]) -> None:
        for line in lines:
            if one.slow >= _SLOW_LINES:
                return
            try:
                measured = one.reader.read(line)
            except FilterTooSlow:
                one.slow += 1
                continue
            for value in () if measured is None else one.results.take(measured):
                self._report(one, value)

    def _report(self, one: _Followed, value: Any) -> None:
        one.allowance.spend(0, time.monotonic())
        if one.allowance.level < 1 or not self._reports.metric(one.attempt, self._text(value)):
            one.left_out += 1
            return
        one.allowance.level -= 1

    def _text(self, value: Any) -> str:
        limit = self._spec.max_metric_bytes
        try:
            return metric_text(value, limit=limit)
        except InvalidMetric:  # too long with all that stands beside it
            return metric_text(value["default"], limit=limit)

    def _remark(self, one: _Followed, why_none: str) -> None:
        """Put into the attempt's end what a user would miss."""
        too_long = one.lines.too_long + sum(each.too_long for each in one.streams.values())
        remarks = [
            why_none,
            _counted(one.left_out, "intermediate results are left out: more than its limits allow"),
            _counted(too_long, f"lines of more than {MOST_LINE:,} bytes are left out"),
            _counted(one.passed_over, "bytes of its file of metrics are passed over: too many"),
            _counted(one.slow, "lines are left out: the filters of 'metrics' take too long"),
        ]
        text = "\n".join(filter(None, remarks))
        if text:
            attempt = one.attempt
            attempt.remark = "\n".join(filter(None, (attempt.remark, text)))
            _log.warning("%r: %s", attempt, text)


def _counted(many: int, text: str) -> str:
    return f"{many:,} {text}" if many else ""
