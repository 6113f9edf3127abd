"""The weights of one experiment: what they take, what may go, and one file of a trial's.

Versions of shared stores are weights as well, with a sweep of their own: :mod:`.versions`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dispatcher import queries
from dispatcher.errors import BackendError, UserError
from dispatcher.experiment import ExperimentConfig
from dispatcher.experiments import versions
from dispatcher.experiments.lead_elsewhere import demand_known_lead
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.queries.versions import StoreRow
from dispatcher.store import SqliteWeightsLedger
from dispatcher.store.leadership import Leadership
from dispatcher.weight_keeper import DiskUse, GcPlan, Policy, WeightKeeper
from dispatcher.weight_keeper.holds import hold
from dispatcher.wiring.remote_roots import local_copy, remote_root, storage_of
from dispatcher.wiring.storage_domains import unseen_domains, unseen_weights
from dispatcher.wiring.weights import weights_root
from trial_runtime.errors import TrialRuntimeError
from trial_runtime.weights.loading.exporting import Exported
from trial_runtime.weights.loading.exporting import export as export_weights
from trial_runtime.weights.usage import file_use

_GONE_HINT = (
    "'bequeath weights du' lists the trials that have theirs, 'bequeath weights pin' keeps them; "
    "'bequeath trial submit' trains these parameters again"
)

if TYPE_CHECKING:
    from dispatcher.experiments.tensors import TensorOrigins


class WeightsUse(NamedTuple):
    """Disk use of weights, and of versions of shared stores, by store."""

    weights: DiskUse
    stores: dict[str, dict[str, Any]]


class WeightsRemoval(NamedTuple):
    """A removal that was carried out, or a plan for one; ``stores``: the versions of shared stores
    that went or would go, counted, and empty where there are none."""

    plan: GcPlan
    stores: dict[str, Any]


class WeightsToRead(NamedTuple):
    """A trial's weights that stay while they are read. ``kind``: of the store that wrote them."""

    path: str
    digest: str
    kind: str
    root: str


@dataclass(frozen=True, slots=True)
class ExperimentWeights:
    """The weights of one experiment of ours. Each call opens its store and closes it again."""

    place: ExperimentFolder
    config: ExperimentConfig
    maximize: bool = field(kw_only=True)

    def use(self) -> WeightsUse:
        """Measure what each trial's weights take, and each shared store. Blocks on the disk."""
        with self._keeper() as keeper:
            use = keeper.disk_use()
        return WeightsUse(use, versions.use(self.place, self.config))

    def plan(self, policy: Policy | None = None, keep_versions: int = 0) -> WeightsRemoval:
        """Say what :meth:`remove` would remove; takes its arguments."""
        with self._keeper(policy) as keeper:
            plan = keeper.plan()
        going = versions.removable(self.place, self.config, keep_versions)
        return WeightsRemoval(plan, {"versions": len(going)})

    def remove(
        self,
        confirm: Callable[[GcPlan], None],
        policy: Policy | None = None,
        keep_versions: int = 0,
    ) -> WeightsRemoval:
        """Remove weights that nothing needs, and old versions. Blocks on the disk.

        Args:
            confirm: gets the plan if weights are going to go; raises if they shall not.
            policy: what stays; None: as the experiment's file says.
            keep_versions: of each shared store the newest, at least; 0: as the file says.

        Raises:
            ExperimentBusy: a head leads it, and keeps to the file's policy itself.
            UserError: nobody can tell from here whether one does.
        """
        demand_known_lead(self.place)
        # While this process holds the lead no head can propose a child of removed weights.
        with Leadership.keep_heads_out(self.place.path), self._keeper(policy) as keeper:
            plan = keeper.plan()
            if plan.doomed:
                confirm(plan)
            plan = keeper.sweep(lambda trials: trials)
            swept = versions.sweep(self.place, self.config, keep_versions)
        return WeightsRemoval(plan, {} if swept is None else swept.to_json())

    def export(self, trial: int, target: Path, *, key: str = "") -> Exported:
        """Write a trial's weights into one ``.safetensors`` file, inherited tensors included.

        Args:
            trial: its number.
            target: the file, replaced if it exists.
            key: only this part of the saved state; empty: all of it.

        Raises:
            UserError: the trial has none, or none that can be exported here.
            BackendError: the file cannot be written.
        """
        save_path, digest = self._with_manifest(trial)
        try:
            with self._readable_root(save_path, digest) as root:
                return export_weights(
                    save_path,
                    target,
                    key=key,
                    digest=digest,
                    root=root,
                    read_roots=tuple(str(path) for path in self.config.weights_read_roots),
                )
        except TrialRuntimeError as error:
            raise UserError(error.message, hint=error.hint, where=error.where) from error
        except OSError as error:
            raise BackendError(f"cannot be written: {error.strerror}", where=str(target)) from error

    def tensors(self, trial: int) -> TensorOrigins:
        """Say which tensors of a trial's weights came from whom. Blocks on the disk.

        Raises:
            TrialNotFound: there is no such trial.
        """
        from dispatcher.experiments.tensors import TensorOrigins, tensor_reader

        with queries.ExperimentReader.open(self.place.path) as reader:
            parent = queries.trial(reader, trial).trial.parent
        try:
            self._with_manifest(trial)
            with tensor_reader(self.place, self.config) as manifests:
                return manifests.origins(trial)
        except UserError as error:  # there are none, or none that can be read here
            return TensorOrigins(trial, parent, error.message)
        except (TrialRuntimeError, OSError) as error:
            return TensorOrigins(trial, parent, f"the manifest cannot be read: {error}")

    @contextmanager
    def reading(self, trial: int) -> Iterator[WeightsToRead]:
        """Hold a trial's weights for as long as somebody reads them: no sweep removes them.

        Args:
            trial: its number.

        Raises:
            UserError: it has none, they are gone, or they are not as they were committed.
            BackendError: a sweep is under way, or they cannot be had.
        """
        with hold(self.place.path, trial):
            save_path, digest, kind = self.committed(trial)
            if kind != "bequeath" and remote_root(self.config, self.place.id) is not None:
                raise UserError(
                    f"trial {trial} wrote its weights by its own means, to a place that is no "
                    "folder of this machine",
                    where=self.place.id,
                )
            with self._readable_root(save_path, digest) as root:
                path = self._checked(root, save_path, digest if kind == "bequeath" else None)
                yield WeightsToRead(path, digest, kind, root)

    def _checked(self, root: str, save_path: str, digest: str | None) -> str:
        """Return where weights lie, if they are there as they were committed."""
        try:
            use = file_use(root, save_path, digest=digest)
        except TrialRuntimeError as error:
            raise UserError(
                f"the weights are not there as they were committed: {error.message}",
                hint=error.hint or _GONE_HINT,
                where=error.where,
            ) from error
        if not use.own:
            raise UserError("the weights are gone", hint=_GONE_HINT, where=f"{root}/{save_path}")
        return os.path.join(os.path.realpath(root), use.path)

    def pin(self, trial: int, note: str = "") -> None:
        """Keep a trial's weights whatever retention says; ``note`` says why."""
        with self._keeper() as keeper:
            keeper.pin(trial, note)

    def unpin(self, trial: int) -> None:
        """Let retention decide on a trial's weights again."""
        with self._keeper() as keeper:
            keeper.unpin(trial)

    def stores(self) -> list[StoreRow]:
        """List the shared stores, each with the versions that are there."""
        return versions.listed(self.place)

    def unseen(self, trial: int | None = None) -> str:
        """Return a sentence on weights that this machine does not see; empty if it sees all.

        With a trial, only on the weights of that trial.
        """
        domains = unseen_domains(self.config)
        if not domains:
            return ""
        ledger = SqliteWeightsLedger.open(self.place.journal, domains)
        try:
            workers = ledger.unseen()
        finally:
            ledger.close()
        return unseen_weights(
            self.config, {t: worker for t, worker in workers.items() if trial in (None, t)}
        )

    def committed(self, trial: int) -> tuple[str, str, str]:
        """Return path, digest and kind of a trial's weights that can be read here.

        Raises:
            UserError: it has none, they were removed, or another machine alone sees them.
        """
        where = self.place.id
        with queries.ExperimentReader.open(self.place.path) as reader:
            one = queries.trial(reader, trial).trial
        if one.save_path is None or one.weights_digest is None:
            raise UserError(f"trial {trial} has committed no weights", where=where)
        with self._keeper() as keeper:
            if trial in keeper.removed_trials():
                text = f"the weights of trial {trial} were removed"
                raise UserError(text, hint=_GONE_HINT, where=where)
        if unseen := self.unseen(trial):
            raise UserError(unseen, hint="ask on a machine that sees them", where=where)
        return one.save_path, one.weights_digest, one.weights_kind or ""

    def _with_manifest(self, trial: int) -> tuple[str, str]:
        """Return path and digest of a trial's weights that can be read here, tensor by tensor.

        Raises:
            UserError: as of :meth:`committed`; or the trial wrote them by its own means.
        """
        save_path, digest, kind = self.committed(trial)
        if kind != "bequeath":
            above = self.config.weights_root or self.place.weights
            raise UserError(
                f"trial {trial} wrote its weights by its own means",
                hint=f"they lie in {above}/{save_path}",
                where=self.place.id,
            )
        return save_path, digest

    @contextmanager
    def _keeper(self, policy: Policy | None = None) -> Iterator[WeightKeeper]:
        if policy is None:
            policy = Policy.of(self.config.retention.keep, self.config.retention.count)
        ledger = SqliteWeightsLedger.open(self.place.journal, unseen_domains(self.config))
        try:
            storage = storage_of(self.config, self.place)
            yield WeightKeeper(self.place.path, storage, ledger, policy, maximize=self.maximize)
        finally:
            ledger.close()

    @contextmanager
    def _readable_root(self, save_path: str, digest: str) -> Iterator[str]:
        """Give a folder that holds these weights; a temporary one if the root is no folder."""
        if remote_root(self.config, self.place.id) is None:
            yield str(weights_root(self.config, self.place))
        else:
            with local_copy(self.config, self.place, save_path, digest) as here:
                yield here
