"""Removal of weights by the retention policy, in an order that a crash cannot harm.

1. Plan: what may go (:mod:`~dispatcher.weight_keeper.retention`), by file. What a process is
   reading now counts as pinned (:mod:`~dispatcher.weight_keeper.holds`).
2. Announce: the head refuses children of these trials from now on.
3. Intend: durably, in the ledger. From here on they count as gone. What a user has pinned since
   the plan stays, though no child of this run may start from it any more.
4. Delete, manifests first: no reader finds half of something.
5. Complete the ledger's rows.

A crash after 3 is finished by :meth:`WeightKeeper.finish_removals`, one before it has changed
no file.

Weights that stay may be *in doubt*: what lies there is not what was committed, so that it is not
known which files they refer to. An agent was killed between a trial's last save and its message of
it, somebody has removed a file, or a share lags. They can refer only to what was there when they
were saved, so all of the trials that were asked for before that trial ended stay with it, and the
others go. Each sweep names them and looks at them again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from dispatcher.errors import PassingBackendError, UserError
from dispatcher.weight_keeper.holds import LOCK_NAME, held
from dispatcher.weight_keeper.ledger import KeptTrial, Ledger, RemovedWeights
from dispatcher.weight_keeper.plan import DiskUse, Doomed, GcPlan, TrialUse
from dispatcher.weight_keeper.retention import Decision, Policy, TrialView, decide
from dispatcher.weight_keeper.storage import FolderStorage, Storage, kind_of
from trial_runtime.failpoints import failpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trial_runtime.weights.usage import Removal

_REQUESTS: Final = frozenset({"open", "blocked", "parked"})

#: Takes the trials whose weights are about to go, before anything is written or deleted; returns
#: those that may, since a child may have been proposed meanwhile. In a running head the engine
#: answers; without one, the holder of the lead.
Announce = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True, slots=True)
class _Going:
    """The trials whose weights go, of those that may, with their files."""

    trials: tuple[int, ...]
    removal: Removal
    doubtful: dict[int, str]


class WeightKeeper:
    """Keeps the weights of one experiment. One thread at a time; methods block for the disk.

    Args:
        folder: the experiment's folder, where the keeper's lock lies.
        root: the weights root, as a folder or as a storage.
        ledger: pins, removals and trials.
        policy: the retention policy.
        maximize: whether larger values are better.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        folder: Path,
        root: Path | Storage,
        ledger: Ledger,
        policy: Policy = Policy(),  # noqa: B008 - frozen
        *,
        maximize: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._lock = FileLock(folder / LOCK_NAME, thread_local=False)
        self._storage = FolderStorage(root) if isinstance(root, Path) else root
        self._ledger = ledger
        self._policy = policy
        self._maximize = maximize
        self._clock = clock

    # -- what is there ---------------------------------------------------------------------

    def removed_paths(self) -> dict[str, int]:
        """Map save paths whose weights are gone or about to go to their trials. A proposal that
        restores from one of these fails as *weights gone*."""
        return {removal.path: removal.trial for removal in self._ledger.removals()}

    def removed_trials(self) -> set[int]:
        """Return the trials that can bequeath no more."""
        return set(self.removed_paths().values())

    def disk_use(self) -> DiskUse:
        """Measure each trial's weights; of damaged ones name the problem."""
        from trial_runtime.errors import WeightsError

        removals = self._ledger.removals()
        gone, pins = {removal.path for removal in removals}, self._ledger.pins()
        uses: list[TrialUse] = []
        for trial in self._ledger.trials():
            path = trial.save_path
            if path is None or path in gone:
                continue
            pinned = trial.id in pins
            try:
                use = self._storage.file_use(path)
            except WeightsError as error:
                uses.append(TrialUse(trial.id, path, 0, 0, 0, pinned, error.message))
                continue
            files = len(use.own) + len(use.inherited)
            own, inherited = use.own_bytes, use.inherited_bytes
            uses.append(TrialUse(trial.id, path, own, inherited, files, pinned))
        return DiskUse(
            root=self._storage.where,
            trials=tuple(uses),
            total_bytes=sum(use.own_bytes for use in uses),
            removed_bytes=sum(r.nbytes for r in removals if r.removed_at is not None),
        )

    # -- pins ------------------------------------------------------------------------------

    def pin(self, trial: int, note: str = "") -> None:
        """Keep a trial's weights whatever the policy says.

        Raises:
            UserError: there is no such trial, it saves no weights, or they are gone.
        """
        kept = self._with_weights(trial)
        # A sweep may be under way: the ledger checks and writes in one step.
        if kept.save_path in self.removed_paths() or not self._ledger.pin(
            trial, note, self._clock()
        ):
            raise UserError(f"the weights of trial {trial} are gone: retention removed them")

    def unpin(self, trial: int) -> None:
        """Let the policy decide again. Raises ``UserError`` if it was not pinned."""
        if not self._ledger.unpin(trial):
            pinned = ", ".join(map(str, self._ledger.pins())) or "none"
            raise UserError(f"trial {trial} is not pinned", hint=f"pinned are: {pinned}")

    def pins(self) -> dict[int, str]:
        """Return the pinned trials, each with its note."""
        return self._ledger.pins()

    # -- removing --------------------------------------------------------------------------

    def plan(self) -> GcPlan:
        """Plan what :meth:`sweep` would remove now. Changes nothing.

        Raises:
            BackendError: the place cannot be read, so it is not known what is needed.
        """
        decision, trials = self._decide()
        return self._plan_of(decision, trials, self._going(decision.dropped, trials), done=False)

    def sweep(self, announce: Announce) -> GcPlan:
        """Remove what may go, in the order at the head of this module.

        Raises:
            PassingBackendError: another keeper is at work, or the file system lags.
            PermanentBackendError: the place cannot be read; nothing was removed.
        """
        with self._alone():
            self._finish_removals()
            decision, trials = self._decide()
            granted: tuple[int, ...] = ()
            # Ask only when the files can be separated: what is announced goes for good.
            asked = self._going(decision.dropped, trials).trials if decision.dropped else ()
            if asked:
                allowed = set(announce(asked))
                granted = tuple(trial for trial in asked if trial in allowed)
                failpoint("keeper.removal.granted")
            going = self._going(granted, trials)
            plan = self._plan_of(decision, trials, going, done=True)
            if going.trials:
                intended = self._ledger.intend_removal(
                    [RemovedWeights(one.path, one.trial, one.nbytes) for one in plan.doomed],
                    self._clock(),
                )
                failpoint("keeper.removal.intended")
                if len(intended) < len(plan.doomed):  # pinned since the plan
                    kept = tuple(trial for trial in going.trials if trial in intended)
                    going = self._going(kept, trials)
                    plan = self._plan_of(decision, trials, going, done=True)
                self._delete(going.removal, [one.path for one in plan.doomed])
            return plan

    def finish_removals(self) -> int:
        """Finish what a crash interrupted; returns how many weights that were. Called when a head
        begins, before the first proposal."""
        with self._alone():
            return self._finish_removals()

    def _finish_removals(self) -> int:
        pending = {r.trial: r.path for r in self._ledger.removals() if r.removed_at is None}
        if not pending:
            return 0
        going = self._going(pending, self._all_trials())
        self._delete(going.removal, [pending[trial] for trial in going.trials])
        return len(going.trials)

    def _delete(self, removal: Removal, paths: Iterable[str]) -> None:
        from trial_runtime.errors import WeightsError

        try:
            self._storage.remove(removal)
        except WeightsError as error:
            raise kind_of(error)(
                f"weights were not removed: {error.message}", hint=error.hint, where=error.where
            ) from error
        except OSError as error:
            raise PassingBackendError(
                f"weights could not be removed: {error.strerror or error}",
                hint="the next sweep tries again; they count as gone already",
                where=str(error.filename or self._storage.where),
            ) from error
        failpoint("keeper.files.removed")
        for path in paths:
            self._ledger.removal_done(path, self._clock())

    def _decide(self) -> tuple[Decision, dict[int, KeptTrial]]:
        gone = self.removed_paths()
        trials = self._all_trials()
        views = [_view(trial) for trial in trials.values() if trial.save_path not in gone]
        decision = decide(
            views,
            self._policy,
            maximize=self._maximize,
            pins={**dict.fromkeys(held(self._folder), ""), **self._ledger.pins()},
            awaited=self._ledger.awaited(),
        )
        return decision, trials

    def _going(self, may_go: Iterable[int], trials: dict[int, KeptTrial]) -> _Going:
        from trial_runtime.errors import WeightsError
        from trial_runtime.weights.storage.faults import named_faults

        try:
            with named_faults(self._storage.where):
                return self._separate(tuple(may_go), trials)
        except WeightsError as error:
            raise kind_of(error)(
                f"nothing was removed, since it is not known what is needed: {error.message}",
                hint=error.hint,
                where=error.where,
            ) from error

    def _separate(self, may_go: tuple[int, ...], trials: dict[int, KeptTrial]) -> _Going:
        from trial_runtime.errors import CorruptWeights, StaleWeights, WeightsError

        owners = {one.save_path: one for one in trials.values() if one.save_path is not None}
        gone = self.removed_paths()
        doubts: dict[str, WeightsError] = {}
        while True:
            since = _end_of_last([owners[path] for path in doubts])
            going = tuple(trial for trial in may_go if _newer(trials[trial], since))
            # Files of earlier removals may be left that only now are not needed.
            drop = {path for path, trial in gone.items() if _newer(trials[trial], since)}
            drop.update(path for trial in going if (path := trials[trial].save_path) is not None)
            keep = {
                path: _committed_manifest(owner)
                for path, owner in owners.items()
                if path not in drop and path not in gone and path not in doubts
            }
            try:
                removal = self._storage.plan_removal(
                    drop=sorted(drop), keep=keep, whole=sorted(doubts)
                )
            except (StaleWeights, CorruptWeights):
                more = self._storage.in_doubt(keep)
                if not more:
                    raise  # it has passed; the next sweep sees what is there
                doubts.update(more)
                continue
            return _Going(going, removal, {owners[p].id: e.message for p, e in doubts.items()})

    def _plan_of(
        self,
        decision: Decision,
        trials: dict[int, KeptTrial],
        going: _Going,
        *,
        done: bool,
    ) -> GcPlan:
        removal = going.removal
        doomed = [
            Doomed(trial, path, self._storage.bytes_below(path, removal))
            for trial in going.trials
            if (path := trials[trial].save_path) is not None
        ]
        return GcPlan(
            done=done,
            doomed=tuple(doomed),
            files=len(removal.delete),
            nbytes=removal.nbytes,
            shared=dict(removal.kept_for),
            kept=dict(decision.kept),
            doubtful=going.doubtful,
        )

    def _all_trials(self) -> dict[int, KeptTrial]:
        return {trial.id: trial for trial in self._ledger.trials()}

    def _with_weights(self, trial: int) -> KeptTrial:
        kept = self._all_trials().get(trial)
        if kept is None:
            raise UserError(f"there is no trial {trial}")
        if kept.save_path is None:
            raise UserError(f"trial {trial} saves no weights")
        return kept

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise PassingBackendError(
                "another keeper is at work on these weights", hint="try again when it is done"
            ) from None
        try:
            yield
        finally:
            self._lock.release()


def _view(trial: KeptTrial) -> TrialView:
    return TrialView(
        id=trial.id,
        live=trial.state != "ended",
        parent=trial.parent,
        save_path=trial.save_path,
        value=trial.number,
        committed=trial.weights_digest is not None,
        request=trial.state in _REQUESTS,
    )


def _end_of_last(trials: Iterable[KeptTrial]) -> float | None:
    """Return the moment after which none of these has saved anything; None if there are none."""
    return max((math.inf if one.ended_at is None else one.ended_at for one in trials), default=None)


def _newer(trial: KeptTrial, moment: float | None) -> bool:
    """Whether it was asked for, and so has saved what it has, after a moment."""
    return moment is None or (trial.asked_at is not None and trial.asked_at > moment)


def _committed_manifest(trial: KeptTrial) -> str | None:
    """Return the digest that the manifest must have; None while the trial may still publish
    another one, and for weights that are not ours."""
    ours = trial.weights_kind == "bequeath" and trial.state == "ended"
    return trial.weights_digest if ours else None
