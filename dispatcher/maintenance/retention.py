"""Retention beside the engine: a thread in which the weight keeper looks at ended trials.

Weights go by the policy; checkpoints go with their trials under every policy; versions of shared
stores go when there are enough newer ones and no trial can ask for them. The rest goes when the
engine has ended (:func:`sweep_at_the_end`).
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from dispatcher.core import State
from dispatcher.core.actions import GrantVersions
from dispatcher.core.events import Event, RemovalAnnounced, StoresReviewed
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Phase
from dispatcher.errors import DispatcherError, PassingBackendError
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.maintenance.stores import AtRest, as_granted
from dispatcher.notices import NoticeKind
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.weights_ledger import SqliteWeightsLedger
from dispatcher.weight_keeper import Policy, WeightKeeper
from dispatcher.weight_keeper.leftovers import LeftoverSweep, sweep_checkpoints
from dispatcher.weight_keeper.storage import FolderVersionStorage
from dispatcher.weight_keeper.store_sweep import Granted, StoreSweep
from dispatcher.wiring.remote_roots import storage_of, stores_of
from dispatcher.wiring.settings import sees_versions
from dispatcher.wiring.storage_domains import unseen_domains
from dispatcher.wiring.weights import policy_of, weights_root

#: Seconds between two looks: a sweep reads the manifests of all trials that are kept.
PERIOD_S = 1.0

#: Seconds between two looks for what crashes have left, which has to be an hour old anyway.
LEFTOVERS_S = 600.0

#: Seconds after which a sweep that failed is tried again.
AGAIN_S = 30.0

#: Seconds the engine gets to answer an announcement; without an answer nothing is deleted.
ANSWER_S = 30.0


class _Sweeps:
    """All sweeps of one experiment. One thread.

    Args:
        config: of the experiment.
        folder: its folder.
        ledger: trials, pins and removals.
        announce: asks the holder of the state which trials' weights may go.
        review: lets the holder take versions off the books.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        folder: ExperimentFolder,
        ledger: SqliteWeightsLedger,
        announce: Callable[[Sequence[TrialId]], Iterable[int]],
        review: Callable[[], Granted | None],
    ) -> None:
        self._root = weights_root(config, folder)
        self._experiment = folder.id
        self._ledger = ledger
        self.announce = announce
        policy = policy_of(config)
        # If all are kept they need not be readable, and there is no keeper.
        self.keeper = (
            None
            if policy == Policy()
            else WeightKeeper(
                folder.path,
                storage_of(config, folder),
                ledger,
                policy,
                maximize=config.optimize_mode != "minimize",
            )
        )
        self._doubtful: dict[int, str] = {}
        self.leftovers = LeftoverSweep(self._root, ledger)
        self.stores = (
            # The agent's, where no other process can look.
            StoreSweep(FolderVersionStorage(folder.path / "nothing"), ledger, lambda: None)
            if config.in_memory
            else StoreSweep(stores_of(config, folder), ledger, review)
        )

    def weights(self) -> str:
        """Sweep the weights that the policy lets go; return a sentence on those that stay in doubt,
        which is empty if it is that of the sweep before."""
        if self.keeper is None:
            return ""
        swept = self.keeper.sweep(lambda trials: self.announce([TrialId(t) for t in trials]))
        before, self._doubtful = self._doubtful, swept.doubtful
        return swept.doubts if swept.doubtful != before else ""

    def checkpoints(self) -> int:
        """Sweep the checkpoints of trials that have ended; return how many."""
        return sweep_checkpoints(self._root, self._experiment, self._ledger.over)


@contextmanager
def _sweeps(
    config: ExperimentConfig,
    folder: ExperimentFolder,
    announce: Callable[[Sequence[TrialId]], Iterable[int]],
    review: Callable[[], Granted | None],
) -> Iterator[_Sweeps]:
    ledger = SqliteWeightsLedger.open(folder.journal, unseen_domains(config))
    try:
        yield _Sweeps(config, folder, ledger, announce, review)
    finally:
        ledger.close()


def sweep_at_the_end(
    config: ExperimentConfig,
    folder: ExperimentFolder,
    journal: SqliteJournal,
    state: State,
    notify: Callable[[NoticeKind, str], None],
) -> None:
    """Remove what is not needed of an experiment that has come to its end, so that the rest does
    not depend on how fast that came. For the head that leads it, without an engine. Blocks for the
    disk.

    Args:
        config: of the experiment.
        folder: its folder.
        journal: opened by the head that leads.
        state: the state after the journal's last row.
        notify: gets what could not be done; ``bequeath weights gc`` does it later.
    """
    rest = AtRest(journal, state)
    try:
        # No head can propose a child of what goes: we lead, and the next one reads the ledger.
        with _sweeps(config, folder, lambda trials: trials, rest.review) as sweeps:
            if doubts := sweeps.weights():
                notify(NoticeKind.RETENTION, doubts)
            if state.stores and sees_versions(config):
                sweeps.stores.look()
    except DispatcherError as error:
        notify(NoticeKind.RETENTION, f"not all that may go is gone: {error}")


def gone_when_completed(journal: SqliteJournal, config: ExperimentConfig, epoch: int) -> str:
    """Make the warning for going on with a completed experiment: weights that no trial needed then
    are gone, and a tuner may yet name them. Empty if it was not completed, or nothing went.

    Args:
        journal: of the experiment.
        config: of the experiment.
        epoch: of the last head.
    """
    completed = journal.get_meta("phase") == Phase.COMPLETED
    if not completed or journal.get_meta("phase_epoch") != str(epoch):
        return ""
    if config.retention.keep == "all":
        return ""  # a user removed some by hand, and knows
    ((gone, saved),) = journal.query(
        "SELECT coalesce(sum(save_path IN (SELECT path FROM weights_removed)), 0), count(*) "
        "FROM trials WHERE weights_digest IS NOT NULL"
    )
    if not gone:
        return ""
    return (
        f"the weights of {gone} of {saved} trials are gone: this experiment was completed, and its "
        f"retention ({config.retention.keep}) keeps what trials to come may need, of which there "
        "were none. A child of one of them fails as 'weights gone', and counts for maxTrialNumber"
    )


def gone_before_it_goes_on(folder: ExperimentFolder, config: ExperimentConfig) -> str:
    """Make the warning of :func:`gone_when_completed` for an experiment that has no head yet."""
    journal = SqliteJournal.at_this_moment(folder.journal)
    try:
        return gone_when_completed(journal, config, int(journal.get_meta("epoch") or 0))
    finally:
        journal.close()


class RetentionThread:
    """Sweeps after trials have ended.

    Args:
        config: of the experiment.
        folder: its folder.
        notify: gets what could not be done; weights that stay are no reason to stop.
        post: hands a fact to the engine.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        folder: ExperimentFolder,
        notify: Callable[[NoticeKind, str], None],
        post: Callable[[Event], None],
    ) -> None:
        self._config = config
        self._folder = folder
        self._notify = notify
        self._post = post
        self._granted: queue.SimpleQueue[tuple[TrialId, ...]] = queue.SimpleQueue()
        self._versions: queue.SimpleQueue[GrantVersions | None] = queue.SimpleQueue()
        self._questions = 0  # asked so far
        self._stores_wanted = threading.Event()
        self._wanted = threading.Event()
        self._over = False
        self._pause = threading.Event()  # set: there is nothing more to wait for
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        """Finish what a crash interrupted, then watch."""
        self._thread.start()

    def trial_over(self) -> None:
        """Sweep soon: a trial has ended. From the engine's thread."""
        self._wanted.set()

    def granted(self, trials: tuple[TrialId, ...]) -> None:
        """Take the engine's answer to an announcement. From the engine's thread."""
        self._granted.put(trials)

    def stores_over_bound(self) -> None:
        """Sweep soon: a shared store has too many versions. From the engine's thread."""
        self._stores_wanted.set()
        self._wanted.set()

    def versions_granted(self, granted: GrantVersions) -> None:
        """Take the engine's answer to a review of the stores. From the engine's thread."""
        self._versions.put(granted)

    def close(self) -> None:
        """End the thread after the work it is doing."""
        self._over = True
        self._pause.set()
        self._wanted.set()
        self._granted.put(())  # the engine, which would have answered, has ended
        self._versions.put(None)
        if self._thread.is_alive():
            self._thread.join(ANSWER_S)

    def _run(self) -> None:
        try:
            with _sweeps(self._config, self._folder, self.announce, self.review_stores) as sweeps:
                self._sweep(sweeps)
        except DispatcherError as error:  # of opening the ledger: each sweep reports its own
            self._notify(NoticeKind.RETENTION, str(error))

    def _sweep(self, sweeps: _Sweeps) -> None:
        if sweeps.keeper is not None:
            self._attempt("weights", sweeps.keeper.finish_removals)
            if elsewhere := unseen_domains(self._config):
                domains = ", ".join(sorted({repr(each) for each in elsewhere.values()}))
                text = f"weights in other storage domains ({domains}) are not seen from here"
                self._notify(NoticeKind.RETENTION, f"{text}: all of them stay")

        def sweep_weights() -> None:
            if doubts := sweeps.weights():
                self._notify(NoticeKind.RETENTION, doubts)

        def sweep_stores() -> None:
            wanted = self._stores_wanted.is_set()
            self._stores_wanted.clear()
            try:
                sweeps.stores.look(over_bound=wanted)
            except DispatcherError:
                if wanted:
                    self._stores_wanted.set()
                raise

        well = self._attempt("checkpoints", sweeps.checkpoints)
        well = self._attempt("versions", sweep_stores) and well
        look_at = time.monotonic() + LEFTOVERS_S
        while not self._over:
            # What failed is tried again without waiting for a trial to end: a server that
            # was away may be back before that.
            self._wanted.wait(max(0.0, look_at - time.monotonic()) if well else AGAIN_S)
            self._wanted.clear()
            well = self._attempt("weights", sweep_weights)
            well = self._attempt("checkpoints", sweeps.checkpoints) and well
            well = self._attempt("versions", sweep_stores) and well
            if time.monotonic() >= look_at and not self._over:
                well = self._attempt("leftovers", sweeps.leftovers.look) and well
                look_at = time.monotonic() + LEFTOVERS_S
            self._pause.wait(PERIOD_S)
        self._attempt("checkpoints", sweeps.checkpoints)  # of those that ended meanwhile

    def review_stores(self) -> Granted | None:
        """Ask which versions of shared stores may go; None: no answer, so none. Blocks."""
        if self._over:  # the item that ends a wait may have been taken already
            return None
        self._questions += 1
        self._post(StoresReviewed(question=self._questions))
        give_up_at = time.monotonic() + ANSWER_S
        while True:
            try:
                granted = self._versions.get(timeout=max(0.0, give_up_at - time.monotonic()))
            except queue.Empty:
                return None
            if granted is None:
                return None
            # A late answer to an earlier question knows nothing of versions since.
            if granted.question == self._questions:
                return as_granted(granted)

    def _attempt(self, what: str, work: Callable[[], object]) -> bool:
        try:
            work()
        except DispatcherError as error:
            self._notify(NoticeKind.RETENTION, f"{what} were not swept: {error}")
            return not isinstance(error, PassingBackendError)
        return True

    def announce(self, trials: Sequence[int]) -> tuple[int, ...]:
        """Ask which of these trials' weights may go; without an answer none. Blocks."""
        if self._over:
            return ()
        self._post(RemovalAnnounced(tuple(map(TrialId, trials))))
        try:
            return self._granted.get(timeout=ANSWER_S)
        except queue.Empty:
            return ()
