"""Trials written for NNI: variables and files as they expect them, and the metrics of a real NNI.

Its library writes metrics to a file, which is read as it grows. Each record is ``ME``, six digits
of length, that many bytes of JSON with a line end. The value is JSON within JSON since v1.5. The
file is read twice a second while the trial runs, and once more when its process is gone, so that
no metric of it comes after the end.

The trial's code may put anything there, and the agent's loop reads it: only a regular file is
read, never waited for, a bounded part at a time, and one that costs much less often.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import msgspec
from msgspec.structs import replace

from trial_runtime import nni_shim
from trial_runtime.agent.attempt import Attempt, CannotStart, Phase
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.runners.trial_dialect import Overheard, TrialDialect
from trial_runtime.agent.trials.bounds import metric_fault
from trial_runtime.api_errors import InvalidMetric
from trial_runtime.nni_shim.any_metric import any_metric_text
from trial_runtime.opening import open_regular
from trial_runtime.refusals import Refusals

#: Allows our module ``nni`` to give its place to a real one.
FILES_ARE_READ = "BEQUEATH_NNI_FILES"

#: Where NNI keeps a trial's parameters, below ``NNI_SYS_DIR``.
PARAMETER_FILE = "parameter.cfg"

#: Where NNI's library writes, below ``NNI_SYS_DIR``.
_FOLDER, _NAME = ".nni", "metrics"
METRICS_FILE = os.path.join(_FOLDER, _NAME)

_EVERY_S = 0.5
_MARK, _DIGITS = b"ME", 6

#: The pause before the next look is at least so many times as long as the last one took.
_PAUSES_PER_LOOK = 20

#: A record has at most so many bytes; more is read at once, so that there is one in it.
_LONGEST = 10**_DIGITS + len(_MARK) + _DIGITS
_MOST_BYTES = 2 << 20

#: The most that is still read of a file when its attempt is over.
_LAST_BYTES = 16 << 20

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
        except (ValueError, RecursionError):
            value = None
        yield value, end
        place = end


def read_part(folder: str, offset: int, *, its_end: bool = False) -> tuple[bytes, int]:
    """A part of an attempt's file, and its offset. Never waits for a writer.

    Args:
        folder: of the attempt.
        offset: where to begin (bytes); a file that is shorter by now is read from its beginning.
        its_end: read the last part there is, which may begin far behind ``offset``.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
    above = os.open(os.path.join(folder, _FOLDER), flags)
    try:
        file = open_regular(_NAME, os.O_RDONLY, dir_fd=above)
    finally:
        os.close(above)
    try:
        size = os.fstat(file).st_size
        if size < offset:
            offset = 0  # another process of the trial has begun the file anew
        if its_end:
            offset = max(offset, size - _MOST_BYTES)
        return os.pread(file, _MOST_BYTES, offset), offset
    finally:
        os.close(file)


class NniMetrics:
    """Follows the metrics files of all attempts of an agent. Owned by its loop."""

    def __init__(self, spec: TrialSpec, reports: Reports, timers: Timers) -> None:
        self._spec = spec
        self._reports = reports
        self._timers = timers
        self._left_out = Refusals()
        self._read: dict[tuple[int, int], int] = {}  # bytes of each file

    def taps(self, attempt: Attempt) -> dict[str, Callable[[bytes], None]]:
        """Nothing that it prints is read."""
        return {}

    def follow(self, attempt: Attempt) -> None:
        """Read the file now, and again and again until the attempt is over."""
        if attempt.phase is not Phase.RUNNING:
            return
        begun = time.monotonic()
        self._take(attempt)
        now = time.monotonic()
        pause_s = max(_EVERY_S, _PAUSES_PER_LOOK * (now - begun))
        attempt.timers.append(self._timers.at(now + pause_s, lambda: self.follow(attempt)))
        del attempt.timers[:-8]  # those that have fired

    def last(self, attempt: Attempt) -> None:
        """Read the rest, once the process is gone.

        Of a file longer than is read only the final result counts, which is written last; the
        attempt's end reports what is left out.
        """
        left = _LAST_BYTES
        while left > 0 and (taken := self._take(attempt)):
            left -= taken
        if left <= 0:
            self._pass_over(attempt)
        self.forget(attempt)

    def forget(self, attempt: Attempt) -> None:
        """Drop what is known of the file of an attempt that is over."""
        self._read.pop(attempt.key, None)

    def _pass_over(self, attempt: Attempt) -> None:
        read = self._read.get(attempt.key, 0)
        try:
            content, offset = read_part(attempt.session.folder, read, its_end=True)
        except OSError:
            return  # it is gone since
        for record, _ in records(content):
            if isinstance(record, dict) and (offset <= read or record.get("type") == "FINAL"):
                self._relay(attempt, record)
        if offset > read:
            attempt.remark = (
                f"it wrote metrics to {METRICS_FILE} faster than they are read: "
                f"{offset - read:,} bytes of them are left out; a final result behind them counts"
            )
            _log.warning("%r: %s", attempt, attempt.remark)

    def _take(self, attempt: Attempt) -> int:
        """Relay the new records; returns how many bytes they were."""
        try:
            content, offset = read_part(attempt.session.folder, self._read.get(attempt.key, 0))
        except OSError:
            return 0  # there is no file yet, or there never will be
        taken = 0
        for record, end in records(content):
            taken = end
            if isinstance(record, dict):
                self._relay(attempt, record)
        if not taken and len(content) > _LONGEST:
            taken = len(content) - _LONGEST  # before that there is no record
        self._read[attempt.key] = offset + taken
        return taken

    def _relay(self, attempt: Attempt, record: dict[str, Any]) -> None:
        kind = record.get("type")
        if kind not in ("PERIODICAL", "FINAL"):
            return  # parameters are asked for, which lie in their file
        text = self._text(attempt, record.get("value"))
        if text is None:
            return
        if kind == "FINAL":
            self._reports.final(attempt, text)
        else:
            self._reports.metric(attempt, text)

    def _text(self, attempt: Attempt, value: Any) -> str | None:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                pass  # of v1.4 and before: the text itself
        limit = self._spec.max_metric_bytes
        try:
            text = any_metric_text(value, limit=limit)
        except (InvalidMetric, RecursionError) as error:
            fault = str(error)
        else:
            if text is None:
                fault = "a result that is not finite"
            else:
                fault = metric_fault(text, limit, any_value=True)
            if not fault:
                return text
        if self._left_out.count("metric"):
            many = self._left_out.total
            _log.warning("%r reports %s, which is left out (%d so far)", attempt, fault, many)
        return None


class NniDialect(TrialDialect):
    """Trials written for NNI: its module and variables, its files of parameters and metrics."""

    names_checkpoints = False

    def shared_variables(self) -> dict[str, str]:
        return {
            # On any platform: it makes NNI's own library write its file, which the agent reads.
            "NNI_PLATFORM": "local",
            FILES_ARE_READ: "1",
            "NNI_EXP_ID": self._config.experiment,
            "NNI_CODE_DIR": self._config.trial.code_directory,
            "MULTI_PHASE": "false",
            "REUSE_MODE": "false",
        }

    def module_folders(self) -> tuple[str, ...]:
        return (nni_shim.folder(),)  # it gives its place to a real one

    def furnish(self, attempt: Attempt, environment: MutableMapping[str, str]) -> None:
        session = attempt.session
        # All nodes see the attempt's folder, and what NNI's library writes in one of another rank
        # is read by nobody: rank 0 speaks for all.
        folder = f"{session.folder}/rank{self.rank}" if self.rank else session.folder
        environment["NNI_SYS_DIR"] = folder
        environment["NNI_OUTPUT_DIR"] = folder
        environment["NNI_TRIAL_JOB_ID"] = str(attempt.trial)
        environment["NNI_TRIAL_SEQ_ID"] = str(attempt.trial)
        content = {
            "parameter_id": attempt.trial,
            "parameter_source": "algorithm",
            "parameters": msgspec.Raw(session.parameters.encode()),
            "parameter_index": 0,
        }
        path = os.path.join(folder, PARAMETER_FILE)
        try:
            os.makedirs(os.path.join(folder, ".nni"), exist_ok=True)
            with open(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(msgspec.json.encode(content))
        except OSError as error:
            raise CannotStart(f"cannot lay the parameters down: {error.strerror}") from error

    def furnish_session(self, attempt: Attempt) -> None:
        variables = dict(attempt.session.variables)
        self.furnish(attempt, variables)
        attempt.session = replace(attempt.session, variables=variables)

    def overheard(self, reports: Reports, timers: Timers) -> Overheard:
        return NniMetrics(self._config.trial, reports, timers)
