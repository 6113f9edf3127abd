"""The trials of one experiment in NNI's layout, held in memory and kept as the store has them."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dispatcher import queries
from dispatcher.folders.ownership import demand_ours
from dispatcher.nni.records import job_of
from dispatcher.nni.rows import is_job, job_record, metric_record, periodical
from dispatcher.queries import ExperimentReader, MetricPoint, TrialSummary
from dispatcher.web.followed_store import FollowedStore

#: Changes that are read at once.
_MOST_CHANGES: Final = 5_000

#: Seconds between two readings of a store in which nobody counts changes.
_UNCOUNTED_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class NniJob:
    """One trial as NNI's clients get it.

    Attributes:
        number: of the trial, which is NNI's sequence number.
        status: NNI's word for its state.
        attempt: the one that counts.
        document: all of it, as JSON.
        finals: its final metric as JSON; empty if there is none.
    """

    number: int
    status: str
    attempt: int
    document: bytes
    finals: tuple[bytes, ...]


class JobTable:
    """Follows one store. Any thread: calls wait for one another.

    Raises:
        ExperimentNotFound: the experiment was deleted.
        NotOurs: it is somebody else's.
        StoreError: its store cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        demand_ours(folder)
        self._folder = folder
        self._lock = threading.Lock()
        self._store = FollowedStore(folder, self._forget)
        self._forget()

    def _forget(self) -> None:
        self._cursor = ""
        self._version = -1
        self._next_whole = 0.0
        self._jobs: dict[int, NniJob] = {}
        self._newest: dict[int, bytes] = {}  # the newest intermediate metric of each, as JSON

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self._store.close()

    # -- what is asked of it --------------------------------------------------------------------

    def jobs(self, status: str | None = None) -> bytes:
        """Return all trials as a JSON list.

        Args:
            status: only those for which NNI has this word; None: all.
        """
        with self._lock:
            self._look()
            chosen = [
                one.document
                for _, one in sorted(self._jobs.items())
                if status in (None, one.status)
            ]
        return _listed(chosen)

    def job(self, number: int) -> bytes:
        """Return one trial as JSON.

        Raises:
            TrialNotFound: there is none of this number.
        """
        with self._lock:
            reader = self._look()
            found = self._jobs.get(number)
            if found is None:
                queries.demand_trial(reader, number)
                raise queries.TrialNotFound(f"trial {number} has no parameters yet")
            return found.document

    def statistics(self) -> list[dict[str, Any]]:
        """Count trials by NNI's words."""
        with self._lock:
            self._look()
            counts = Counter(one.status for _, one in sorted(self._jobs.items()))
        return [
            {"trialJobStatus": status, "trialJobNumber": many} for status, many in counts.items()
        ]

    def next_number(self) -> int:
        """Return a number that is above those of all trials."""
        with self._lock:
            self._look()
            return max(self._jobs, default=-1) + 1

    def latest(self) -> bytes:
        """Return final metrics, and the newest intermediate one of each trial, as a JSON list."""
        with self._lock:
            self._look()
            finals = [each for _, one in sorted(self._jobs.items()) for each in one.finals]
            newest = [self._newest[number] for number in sorted(self._newest)]
        return _listed([*finals, *newest])

    def metrics(self, first: int, last: int, kind: str | None = None) -> list[bytes]:
        """Return the metrics of trials by number, each as JSON.

        Args:
            first: the first trial.
            last: the last one.
            kind: ``PERIODICAL`` or ``FINAL``; None: both.
        """
        with self._lock:
            reader = self._look()
            jobs = [self._jobs[n] for n in sorted(self._jobs) if first <= n <= last]
            wanted = kind in (None, "PERIODICAL")
            found = queries.metrics_between(reader, first, last) if wanted else {}
        answer: list[bytes] = []
        for one in jobs:
            answer += _intermediate(one, found.get(one.number, ()))
            answer += one.finals if kind in (None, "FINAL") else ()
        return answer

    def numbers(self) -> list[int]:
        """List the numbers of all trials."""
        with self._lock:
            self._look()
            return sorted(self._jobs)

    # -- following ------------------------------------------------------------------------------

    def _look(self) -> ExperimentReader:
        """Take in what has changed, and return the store."""
        reader = self._store.opened()
        version = reader.version()
        if version == self._version:
            return reader
        if not self._cursor:
            self._read_whole(reader, version)
            return reader
        while True:
            found = queries.changes(reader, self._cursor, most=_MOST_CHANGES)
            if found.anew or not found.exact:
                if found.anew or time.monotonic() >= self._next_whole:
                    self._read_whole(reader, version)
                return reader
            reported = {one.trial for one in found.metrics}
            self._put([one.trial for one in found.trials])
            touched = reported | {one.trial.id for one in found.trials}
            self._put_newest(queries.newest_reports(reader, sorted(touched)))
            self._cursor = found.cursor
            if not found.more:
                self._version = version
                return reader

    def _read_whole(self, reader: ExperimentReader, version: int) -> None:
        with reader.moment():
            self._cursor = queries.cursor_now(reader)
            trials = queries.list_trials(reader)
            newest = queries.newest_reports(reader)
        self._jobs, self._newest = {}, {}
        self._put(trials)
        self._put_newest(newest)
        self._version = version
        self._next_whole = time.monotonic() + _UNCOUNTED_S

    def _put(self, trials: Iterable[TrialSummary]) -> None:
        for trial in trials:
            if not is_job(trial):
                continue
            self._jobs[trial.id] = _job(trial, self._folder)
            self._newest.pop(trial.id, None)  # of an attempt that may not count any more

    def _put_newest(self, reports: Iterable[queries.NewestReport]) -> None:
        for one in reports:
            job = self._jobs.get(one.trial)
            if job is not None and job.attempt == one.point.attempt:
                record = periodical(one.trial, one.many - 1, one.point)
                self._newest[one.trial] = _encoded(record)


def _job(trial: TrialSummary, folder: Path) -> NniJob:
    record = job_of(trial, folder)
    return NniJob(
        number=trial.id,
        status=record.status,
        attempt=trial.attempt,
        document=_encoded(job_record(trial, folder)),
        finals=tuple(_encoded(metric_record(one)) for one in record.finalMetricData),
    )


def _intermediate(job: NniJob, points: Sequence[MetricPoint]) -> list[bytes]:
    """Return the intermediate metrics of the attempt that counts, numbered without holes."""
    own = [one for one in points if one.attempt == job.attempt and not one.final]
    return [_encoded(periodical(job.number, at, one)) for at, one in enumerate(own)]


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def _listed(documents: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(documents) + b"]"
