"""Notes, tags and stars of one experiment of ours, changed whether or not a head leads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dispatcher import queries
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.ownership import demand_ours
from dispatcher.store.notes import OF_EXPERIMENT, Annotations


@dataclass(frozen=True, slots=True)
class ExperimentAnnotations:
    """Notes, tags and stars of trials and of the experiment. Each call opens and closes the store.

    A trial of None is the experiment. Each change returns how it stands then. All raise:

        NotOurs: the experiment is somebody else's.
        TrialNotFound: there is no such trial.
        UserError: a text cannot be kept, or there are too many.
        StoreError: the store cannot be written; nothing has changed then.
    """

    place: ExperimentFolder

    def add_note(self, trial: int | None, text: str) -> queries.GivenAnnotations:
        """Write a note beside those that are there."""
        with self._opened(trial) as (kept, of):
            kept.add_note(of, text)
        return self.of(trial)

    def remove_note(self, trial: int | None, number: int) -> queries.GivenAnnotations:
        """Take a note of this trial away, if it is there."""
        with self._opened(trial) as (kept, of):
            kept.remove_note(of, number)
        return self.of(trial)

    def change_tags(
        self, trial: int | None, add: Sequence[str], remove: Sequence[str]
    ) -> queries.GivenAnnotations:
        """Give tags and take tags away; others stay.

        Args:
            trial: its number; None for the experiment.
            add: tags to give.
            remove: tags to take away, if they are there.
        """
        with self._opened(trial) as (kept, of):
            kept.change_tags(of, add, remove)
        return self.of(trial)

    def star(self, trial: int | None, *, starred: bool) -> queries.GivenAnnotations:
        """Give a star, or take it away."""
        with self._opened(trial) as (kept, of):
            kept.star(of, starred=starred)
        return self.of(trial)

    def of(self, trial: int | None) -> queries.GivenAnnotations:
        """Read what is there."""
        with queries.ExperimentReader.open(self.place.path) as reader:
            return queries.annotations_of(reader, OF_EXPERIMENT if trial is None else trial)

    @contextmanager
    def _opened(self, trial: int | None) -> Iterator[tuple[Annotations, int]]:
        demand_ours(self.place.path)
        if trial is not None:
            with queries.ExperimentReader.open(self.place.path) as reader:
                queries.demand_trial(reader, trial)
        kept = Annotations.open(self.place.journal)
        try:
            yield kept, OF_EXPERIMENT if trial is None else trial
        finally:
            kept.close()
