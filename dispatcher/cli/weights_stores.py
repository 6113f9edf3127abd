"""``bequeath weights versions``, and the part of ``du`` and ``gc`` for shared stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig
    from dispatcher.experiments.find import LocatedExperiment
    from dispatcher.weight_keeper.storage import VersionStorage
    from dispatcher.weight_keeper.store_sweep import Swept


def versions(
    experiment: Experiment = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="NAME", help="Only of this shared store.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """List the versions of shared stores that are there, whose they are, and why they stay."""
    from dispatcher.experiments.find import find_one
    from dispatcher.maintenance.stores import state_with_stores
    from dispatcher.queries.versions import stores_of

    located = find_one(experiment, folder)
    state = state_with_stores(_journal(located))
    stores = [] if state is None else stores_of(state)
    chosen = [each for each in stores if store in (None, each.name)]
    if as_json:
        listed = {
            each.name: {
                "published": each.published,
                "versions": [version.to_json() for version in each.versions],
            }
            for each in chosen
        }
        print_json({"experiment": located.id, "stores": listed})
        return
    columns = (
        Column("store"),
        Column("version", right=True),
        Column("by", right=True),
        Column("size", right=True),
        Column("digest"),
        Column("stays as", shrink=True),
    )
    rows = [
        (
            one.store,
            str(one.number),
            f"{one.trial}.{one.attempt}",
            formatting.size(one.nbytes),
            one.digest[:12],
            one.needed,
        )
        for each in chosen
        for one in each.versions
    ]
    if rows:
        print_table(columns, rows)
    for each in chosen:
        there = formatting.count(len(each.versions), "version")
        say(f"{each.name}: {there} of {each.published} published")
    if not chosen:
        note("nothing was published to a shared store")


def stores_use(located: LocatedExperiment, config: ExperimentConfig) -> dict[str, dict[str, Any]]:
    """Return store → disk use of its versions.

    ``published`` and ``versions`` are counts, ``bytes`` is the size of files on disk, each counted
    once, and ``leftovers`` is the number of folders that are no version.
    """
    from dispatcher.maintenance.stores import state_with_stores
    from dispatcher.queries.versions import stores_of

    state = state_with_stores(_journal(located))
    if state is None:
        return {}
    storage = None if config.in_memory else _version_storage(located, config)
    there = [] if storage is None else storage.folders()
    use = {}
    for each in stores_of(state):
        folders = [path for path in there if path.partition("/")[0] == each.name]
        known = {version.path for version in each.versions}
        nbytes = 0
        for path in folders if storage is not None else ():
            nbytes += _own_bytes(storage, path)
        use[each.name] = {
            "published": each.published,
            "versions": len(each.versions),
            "bytes": nbytes,
            "leftovers": sum(path not in known for path in folders),
        }
    return use


def _own_bytes(storage: VersionStorage | None, path: str) -> int:
    from trial_runtime.errors import WeightsError

    assert storage is not None
    try:
        return sum(storage.file_use(path).own.values())
    except WeightsError:
        return 0  # an incomplete version


def show_stores_use(use: dict[str, dict[str, Any]]) -> None:
    """Print a line for each store."""
    for name, each in use.items():
        there = formatting.count(each["versions"], "version")
        left = (
            f"; {formatting.count(each['leftovers'], 'folder')} beside" if each["leftovers"] else ""
        )
        say(
            f"shared store {name}: {there} of {each['published']} published, "
            f"{formatting.size(each['bytes'])}{left}"
        )


def sweep_stores(located: LocatedExperiment, config: ExperimentConfig, keep: int) -> Swept | None:
    """Remove versions that are not needed. The caller must hold the lead.

    Args:
        located: the experiment.
        config: its settings.
        keep: the newest versions of each store that stay at least; 0: as the settings say.

    Returns:
        What was removed; None if there are no versions, or none that this machine can reach.
    """
    from dispatcher.maintenance.stores import AtRest, state_with_stores
    from dispatcher.store.compaction import Compaction
    from dispatcher.store.journal import SqliteJournal
    from dispatcher.store.replay.folding import read_whole_past
    from dispatcher.store.weights_ledger import SqliteWeightsLedger
    from dispatcher.weight_keeper.store_sweep import StoreSweep
    from dispatcher.wiring.settings import sees_versions

    path = _journal(located)
    if not sees_versions(config) or state_with_stores(path) is None:
        return None
    journal = SqliteJournal.open(path)
    ledger = SqliteWeightsLedger.open(path)
    try:
        rest = AtRest(journal, read_whole_past(journal, Compaction(journal)).state, keep)
        return StoreSweep(_version_storage(located, config), ledger, rest.review).look()
    finally:
        ledger.close()
        journal.close()


def removable_versions(
    located: LocatedExperiment, config: ExperimentConfig, keep: int
) -> list[tuple[str, int]]:
    """Return the versions that a sweep would give up now, by store and number.

    Args:
        located: the experiment.
        config: its settings.
        keep: the newest versions of each store that stay at least; 0: as the settings say.
    """
    from dispatcher.core.stores import let_go_of_old
    from dispatcher.maintenance.stores import state_with_stores
    from dispatcher.wiring.settings import sees_versions

    state = state_with_stores(_journal(located)) if sees_versions(config) else None
    gone = () if state is None else let_go_of_old(state, keep)
    return [(store, number) for store, number, _ in gone]


def show_swept(swept: dict[str, Any], *, done: bool) -> None:
    """Print how many versions were removed, or would be (``done`` is false)."""
    word = "removed" if done else "would be removed"
    text = f"{formatting.count(swept['versions'], 'version')} of shared stores {word}"
    if swept.get("leftovers"):
        text += f", and {formatting.count(swept['leftovers'], 'folder')} that died publishers left"
    if done:
        text += f": {formatting.count(swept['files'], 'file')}, {formatting.size(swept['bytes'])}"
    say(text)


def _journal(located: LocatedExperiment) -> Any:
    from dispatcher.folders.experiment_folder import ExperimentFolder

    return ExperimentFolder(located.folder).journal


def _version_storage(located: LocatedExperiment, config: ExperimentConfig) -> VersionStorage:
    from dispatcher.folders.experiment_folder import ExperimentFolder
    from dispatcher.wiring.remote_roots import stores_of

    return stores_of(config, ExperimentFolder(located.folder))
