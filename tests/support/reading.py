"""A journal read by a stranger: what was said of each trial and attempt, and in which row.

Nothing is judged here, and nothing of ``dispatcher.core``'s rules is used: its events and the
codec are the language that the journal is written in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dispatcher.core import events as e
from dispatcher.core.model import EndReason, Weights
from dispatcher.core.resources import Offer
from dispatcher.core.settings import Settings
from dispatcher.ports import JournalRow


def _free(offer: Offer | None) -> set[str]:
    """Devices on which something may be started."""
    return {device.id for device in offer.devices if not device.trouble} if offer else set()


_SURROUNDINGS = (
    e.HeadStarted,
    e.DiskLow,
    e.DiskRecovered,
    e.WorkerJoined,
    e.WorkerOffers,
    e.WorkerLost,
    e.WorkerSuspect,
    e.WorkerHeard,
    e.WorkerWaits,
)
_FROM_HOST = (e.Proposed, e.ResultDelivered, e.EndDelivered)


@dataclass
class Attempt:
    """What one attempt said, by row number."""

    number: int
    first: int  # its first word
    started: int | None = None
    finals: list[tuple[int, str]] = field(default_factory=list)
    published: list[tuple[int, int, Weights]] = field(default_factory=list)  # row, seq, what
    files: Weights | None = None  # found by its agent at its end
    ended: tuple[int, EndReason] | None = None

    @property
    def final(self) -> tuple[int, str] | None:
        """The first one: later ones are not counted."""
        return self.finals[0] if self.finals else None

    @property
    def weights(self) -> Weights | None:
        """What it leaves: what it published itself last, else what its agent found."""
        if self.published:
            return max(self.published, key=lambda told: told[1])[2]
        return self.files

    def ended_before(self, row: int) -> bool:
        """Whether its end had been told by then."""
        return self.ended is not None and self.ended[0] < row


@dataclass
class TrialStory:
    """What the journal tells of one trial."""

    number: int
    proposed: int | None = None
    save: str | None = None
    restore: str | None = None
    attempts: dict[int, Attempt] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    kills: list[int] = field(default_factory=list)  # by users
    stops: list[tuple[int, EndReason]] = field(default_factory=list)  # those, and early ones

    def attempt(self, number: int, row: int) -> Attempt:
        """The record of an attempt, made at its first word."""
        return self.attempts.setdefault(number, Attempt(number, row))

    @property
    def last(self) -> Attempt | None:
        """The newest attempt that ever spoke."""
        return self.attempts[max(self.attempts)] if self.attempts else None

    def reason_of(self, attempt: Attempt) -> EndReason | None:
        """Why an attempt ended, as it counts. One that was to end, and of whose end nobody knows
        more than that it came (the experiment ended, or its agent did, or its place was to be taken
        back), ended as it was to: the first order counts, and only if it was given before the end
        was told."""
        if attempt.ended is None:
            return None
        row, reason = attempt.ended
        orders = [why for at, why in self.stops if at < row]
        if orders and reason in (EndReason.SHUTDOWN, EndReason.LOST, EndReason.PREEMPTED):
            return orders[0]
        return reason


class Reading:
    """One pass over the journal."""

    def __init__(self, rows: Iterable[JournalRow]) -> None:
        self.disorder: list[str] = []
        self.trials: dict[int, TrialStory] = {}
        self.settings: list[tuple[int, Settings]] = []
        self.epochs: list[tuple[int, int]] = []
        self.losses: list[tuple[int, str]] = []  # (row, worker): attempts may have been given up
        self.worker_of: dict[tuple[int, int], set[str]] = {}  # of attempts, where it is known
        self.harms: Sequence[tuple[int, str]] | None = None  # (row, worker), where it is known
        self.holds: dict[int, set[tuple[int, int]]] = {}  # row of a hello → attempts that live on
        self.starts: list[tuple[int, int, int]] = []  # (row, trial, attempt) of AttemptStarted
        self.stopped: list[int] = []  # rows in which all that runs was told to end
        self.imports_delivered: set[int] = set()
        self.offers: list[tuple[int, e.VersionOffered]] = []  # to shared stores
        self.submitted: list[tuple[int, str | None]] = []  # by hand: (row, save path)
        self.surroundings: list[tuple[int, e.Event]] = []  # disks and workers, as they were told
        self.last_row = 0
        self._host = False  # a tuner host is there; what is said between two is of no account
        for number, _, event in rows:
            if number < self.last_row:
                self.disorder.append(f"row {number} comes after row {self.last_row}")
            self.last_row = number
            self._take(number, event)

    def trial(self, number: int) -> TrialStory:
        """The record of a trial."""
        return self.trials.setdefault(number, TrialStory(number))

    @property
    def started(self) -> list[TrialStory]:
        """Trials of which some attempt spoke."""
        return [t for t in self.trials.values() if t.attempts]

    def maybe_lost(self, trial: int, attempt: Attempt, before: int) -> bool:
        """Whether the attempt may have been given up before that row: its worker was lost, or
        said hello without it."""
        since = self.begun_after(self.trials[trial], attempt.number)
        return any(row < before for row in self._losses_of(trial, attempt.number, since))

    def _losses_of(self, trial: int, number: int, since: int) -> list[int]:
        key = (trial, number)
        where = self.worker_of.get(key)
        return [
            n
            for n, worker in self.losses
            if n >= since
            and key not in self.holds.get(n, ())
            and (where is None or worker in where)
            and (
                self._harmed(worker, n)
                or self._ended_unheard(trial, number, since, n)
                or self._placed_anew(trial, number, worker, (since, n))
            )
        ]

    def _ended_unheard(self, trial: int, number: int, since: int, row: int) -> bool:
        """Whether the attempt was to end before anybody had heard of it. Its start may be lost
        with a line that broke, and is not given again: a hello without the attempt is its end."""
        story = self.trials[trial]
        attempt = story.attempts.get(number)
        if attempt is not None and attempt.first < row:
            return False
        stops = [*self.stopped, *(stop for stop, _ in story.stops)]
        return any(since <= stop < row for stop in stops)

    def _placed_anew(self, trial: int, number: int, worker: str, rows: tuple[int, int]) -> bool:
        """Whether a hello (the second row) may have ended an attempt, begun after the first row, of
        which nobody had heard: its start was lost, and a device that its worker had is gone."""
        since, hello = rows
        story = self.trials[trial].attempts.get(number)
        if story is not None and story.first < hello:
            return False
        had: set[str] = set()
        for row, event in self.surroundings:
            if isinstance(event, e.WorkerJoined | e.WorkerOffers) and event.worker == worker:
                free = _free(event.offer)
                if row >= hello:
                    return not had <= free
                had = free if row <= since else had | free
        return False

    def silent_since(self, last: Attempt, trial: int) -> bool:
        """Whether a later attempt was ordered than the last one that ever spoke."""
        return any(t == trial and n > last.number for t, n in self.worker_of)

    def _harmed(self, worker: str, before: int) -> bool:
        """Whether anything had befallen the worker by then: a head that comes and goes, or a line
        that breaks, loses nothing."""
        return self.harms is None or any(n <= before and w == worker for n, w in self.harms)

    def begun_after(self, trial: TrialStory, number: int) -> int:
        """The row before which an attempt cannot have been started (starts leave no row): the
        one before it was over, or may have been given up. Its late words may come later."""
        if number <= 1:
            return trial.proposed or 0
        before = trial.attempts.get(number - 1)
        since = self.begun_after(trial, number - 1)
        over = self._losses_of(trial.number, number - 1, since)
        if before is not None and before.ended is not None:
            over = [*over, before.ended[0]]
        return min(over, default=before.first if before is not None else since)

    def any_setting(self, name: str) -> set[object]:
        """All values that a setting ever had."""
        return {getattr(settings, name) for _, settings in self.settings}

    def _take(self, row: int, event: e.Event) -> None:
        if isinstance(event, e.TunerHostReady):
            self._host = True
        elif isinstance(event, e.TunerHostLost | e.HeadStarted):
            self._host = False
        elif isinstance(event, _FROM_HOST) and not self._host:
            return
        if isinstance(event, _SURROUNDINGS):
            self.surroundings.append((row, event))
        match event:
            case e.ExperimentCreated(settings=settings) | e.SettingsUpdated(settings=settings):
                self.settings.append((row, settings))
            case e.HeadStarted(epoch=epoch, settings=changed):
                self.epochs.append((row, epoch))
                if changed is not None:
                    self.settings.append((row, changed))
            case e.WorkerLost(worker=worker) | e.WorkerWaits(worker=worker):
                self.losses.append((row, worker))
            case e.WorkerJoined(worker=worker, holds=holds):
                self.losses.append((row, worker))
                self.holds[row] = {(t, n) for t, n in holds}
            case e.ImportDelivered(number=number) if self._host:
                self.imports_delivered.add(number)
            case e.TrialSubmitted(save_path=save):
                self.submitted.append((row, save))
            case e.StopRequested(kind=e.StopKind.NOW):
                self.stopped.append(row)
            case e.TrialStopRequested(trial=t, reason=reason):
                self.trial(t).stops.append((row, reason))
                if reason is EndReason.KILLED:
                    self.trial(t).kills.append(row)
            case e.Proposed(trial=t, save_path=save, restore_path=restore):
                trial = self.trial(t)
                trial.proposed, trial.save, trial.restore = row, save, restore
            case e.ResultDelivered(trial=t):
                self.trial(t).results.append(row)
            case e.EndDelivered(trial=t):
                self.trial(t).ends.append(row)
            case _:
                self._attempt(row, event)

    def _attempt(self, row: int, event: e.Event) -> None:
        match event:
            case e.AttemptStarted(trial=t, attempt=n):
                attempt = self.trial(t).attempt(n, row)
                attempt.started = attempt.started or row
                self.starts.append((row, t, n))
            case e.FinalReported(trial=t, attempt=n, value=value):
                self.trial(t).attempt(n, row).finals.append((row, value))
            case e.VersionOffered(trial=t, attempt=n):
                self.trial(t).attempt(n, row)
                self.offers.append((row, event))
            case e.WeightsPublished(trial=t, attempt=n, seq=seq, weights=weights):
                attempt = self.trial(t).attempt(n, row)
                if attempt.ended is None:
                    attempt.published.append((row, seq, weights))
            case e.AttemptEnded(trial=t, attempt=n, reason=reason, weights=files):
                attempt = self.trial(t).attempt(n, row)
                if attempt.ended is None:
                    attempt.ended, attempt.files = (row, reason), files
            case _:
                pass
