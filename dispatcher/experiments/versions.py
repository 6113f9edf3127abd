"""The versions of an experiment's shared stores: listed, measured, and removed when old."""

from __future__ import annotations

from typing import Any

from dispatcher.core.stores import let_go_of_old
from dispatcher.experiment import ExperimentConfig
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.maintenance import stores
from dispatcher.queries.versions import StoreRow, stores_of
from dispatcher.store.compaction import Compaction
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.folding import read_whole_past
from dispatcher.store.weights_ledger import SqliteWeightsLedger
from dispatcher.weight_keeper.storage import VersionStorage
from dispatcher.weight_keeper.store_sweep import StoreSweep, Swept
from dispatcher.wiring import remote_roots
from dispatcher.wiring.settings import sees_versions
from trial_runtime.errors import WeightsError


def listed(place: ExperimentFolder) -> list[StoreRow]:
    """List the shared stores of an experiment, by name; empty if nothing was published."""
    state = stores.state_with_stores(place.journal)
    return [] if state is None else stores_of(state)


def use(place: ExperimentFolder, config: ExperimentConfig) -> dict[str, dict[str, Any]]:
    """Return store → disk use of its versions.

    ``published`` and ``versions`` are counts, ``bytes`` is the size of files on disk, each counted
    once, and ``leftovers`` is the number of folders that are no version.
    """
    rows = listed(place)
    if not rows or config.in_memory:
        storage, there = None, []
    else:
        storage = remote_roots.stores_of(config, place)
        there = storage.folders()
    measured = {}
    for each in rows:
        folders = [path for path in there if path.partition("/")[0] == each.name]
        known = {version.path for version in each.versions}
        measured[each.name] = {
            "published": each.published,
            "versions": len(each.versions),
            "bytes": sum(_own_bytes(storage, path) for path in folders if storage is not None),
            "leftovers": sum(path not in known for path in folders),
        }
    return measured


def _own_bytes(storage: VersionStorage, path: str) -> int:
    try:
        return sum(storage.file_use(path).own.values())
    except WeightsError:
        return 0  # an incomplete version


def sweep(place: ExperimentFolder, config: ExperimentConfig, keep: int) -> Swept | None:
    """Remove versions that are not needed. The caller must hold the lead.

    Args:
        place: the experiment's.
        config: its settings.
        keep: the newest versions of each store that stay at least; 0: as the settings say.

    Returns:
        What was removed; None if there are no versions, or none that this machine can reach.
    """
    if not sees_versions(config) or stores.state_with_stores(place.journal) is None:
        return None
    journal = SqliteJournal.open(place.journal)
    ledger = SqliteWeightsLedger.open(place.journal)
    try:
        past = read_whole_past(journal, Compaction(journal))
        rest = stores.AtRest(journal, past.state, keep)
        return StoreSweep(remote_roots.stores_of(config, place), ledger, rest.review).look()
    finally:
        ledger.close()
        journal.close()


def removable(
    place: ExperimentFolder, config: ExperimentConfig, keep: int
) -> list[tuple[str, int]]:
    """Return the versions that a sweep would give up now, by store and number.

    Args:
        place: the experiment's.
        config: its settings.
        keep: the newest versions of each store that stay at least; 0: as the settings say.
    """
    state = stores.state_with_stores(place.journal) if sees_versions(config) else None
    gone = () if state is None else let_go_of_old(state, keep)
    return [(store, number) for store, number, _ in gone]
