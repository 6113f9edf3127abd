"""Retention beside the engine: a thread in which the weight keeper looks at ended trials."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence

from dispatcher.core.events import Event, RemovalAnnounced
from dispatcher.core.ids import TrialId
from dispatcher.errors import BequeathError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.folders import ExperimentFolder
from dispatcher.notices import Notice, NoticeKind
from dispatcher.store.weights_ledger import SqliteWeightsLedger
from dispatcher.weight_keeper import Policy, WeightKeeper
from dispatcher.wiring import policy_of, weights_root

#: Seconds between two looks: a sweep reads the manifests of all trials that are kept.
PERIOD_S = 1.0

#: Seconds the engine gets to answer an announcement; without an answer nothing is deleted.
ANSWER_S = 30.0


class RetentionThread:
    """Sweeps after trials have ended, unless everything is kept.

    Args:
        notify: told what could not be done; weights that stay are no reason to stop.
        post: hands a fact to the engine.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        folder: ExperimentFolder,
        notify: Callable[[Notice], None],
        post: Callable[[Event], None],
    ) -> None:
        self._config = config
        self._folder = folder
        self._notify = notify
        self._post = post
        self._granted: queue.SimpleQueue[tuple[TrialId, ...]] = queue.SimpleQueue()
        self._wanted = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        """Finish what a crash interrupted, then watch. Does nothing where all is kept."""
        if policy_of(self._config) != Policy():
            self._thread.start()

    def trial_over(self) -> None:
        """A trial ended. From the engine's thread."""
        self._wanted.set()

    def granted(self, trials: tuple[TrialId, ...]) -> None:
        """The engine's answer to an announcement. From the engine's thread."""
        self._granted.put(trials)

    def close(self) -> None:
        """End the thread after what it is doing."""
        self._over = True
        self._wanted.set()
        self._granted.put(())  # the engine, which would have answered, has ended
        if self._thread.is_alive():
            self._thread.join(ANSWER_S)

    def _run(self) -> None:
        try:
            ledger = SqliteWeightsLedger.open(self._folder.journal)
        except BequeathError as error:
            self._notify(Notice(NoticeKind.RETENTION, str(error)))
            return
        try:
            root = weights_root(self._config, self._folder)
            keeper = WeightKeeper(
                self._folder.path,
                root,
                ledger,
                policy_of(self._config),
                maximize=self._config.optimize_mode != "minimize",
            )
            self._attempt(keeper.finish_removals)
            while not self._over:
                self._wanted.wait()
                self._wanted.clear()
                self._attempt(lambda: keeper.sweep(self._announce))
                time.sleep(PERIOD_S)
        finally:
            ledger.close()

    def _attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BequeathError as error:
            self._notify(Notice(NoticeKind.RETENTION, f"weights were not swept: {error}"))

    def _announce(self, trials: Sequence[int]) -> tuple[int, ...]:
        if self._over:
            return ()
        self._post(RemovalAnnounced(tuple(map(TrialId, trials))))
        try:
            return self._granted.get(timeout=ANSWER_S)
        except queue.Empty:
            return ()
