"""One trial of an experiment with its attempts: the one that is meant, and whether it is over."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from dispatcher import queries
from dispatcher.errors import UserError

if TYPE_CHECKING:
    from dispatcher.attempt_files.attempt_at import AttemptAt
    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.queries import TrialDetail

_OVER = ("delivering", "ended", "backoff")


class LocatedTrial:
    """One trial of an experiment, with the experiment's store open for reading.

    Raises:
        TrialNotFound: the experiment has no such trial.
    """

    def __init__(self, experiment: ExperimentHandle, trial: int) -> None:
        self.experiment = experiment
        self.folder = experiment.place
        self.trial = trial
        self._reader = queries.ExperimentReader.open(experiment.folder)
        try:
            self.detail: TrialDetail = queries.trial(self._reader, trial)
        except BaseException:
            self._reader.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reader.close()

    def look_again(self) -> None:
        """Read the trial's record again."""
        self.detail = queries.trial(self._reader, self.trial)

    @property
    def newest(self) -> int:
        """The number of its newest attempt; 0 if none has begun."""
        return max((each.number for each in self.detail.attempts), default=0)

    @property
    def state(self) -> str:
        """The trial's outcome, or its state while it is not over."""
        return self.detail.trial.outcome or self.detail.trial.state

    def attempt(self, number: int | None) -> AttemptAt:
        """Return an attempt, the newest if no number is given.

        Raises:
            UserError: it has not begun.
        """
        from dispatcher.attempt_files.attempt_at import AttemptAt

        wanted = number or self.newest
        for each in self.detail.attempts:
            if each.number == wanted:
                return AttemptAt(each.worker, self.trial, wanted, each.pid or 0)
        if number is not None and self.newest:
            text = f"trial {self.trial} has no attempt {number}, and {self.newest} is its newest"
            raise UserError(text, where=self.experiment.id)
        text = f"trial {self.trial} has not started: it is {self.state}"
        raise UserError(text, hint=f"bequeath why {self.trial}", where=self.experiment.id)

    def over(self, number: int) -> bool:
        """Whether that attempt is over."""
        one = self.detail.trial
        return one.attempt > number or one.state in _OVER
