"""Retention beside the engine: a thread that lets the weight keeper look at ended trials."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dispatcher.core.ids import TrialId
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.folders import ExperimentFolder
from dispatcher.notices import Notice
from dispatcher.store.journal import SqliteJournal


class RetentionThread:
    """Placeholder until the keeper lands."""

    def __init__(
        self,
        config: ExperimentConfig,
        folder: ExperimentFolder,
        journal: SqliteJournal,
        notify: Callable[[Notice], None],
    ) -> None:
        self._wanted = threading.Event()

    def trial_over(self, trial: TrialId) -> None:
        """A trial ended."""

    def close(self) -> None:
        """End the thread."""
