"""``bequeath weights``: disk use, removal and export of an experiment's weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import (
    Experiment,
    Folder,
    Json,
    OfExperiment,
    Trial,
    Yes,
    confirmed,
)
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import BackendError, UserError
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig
    from dispatcher.experiments.find import LocatedExperiment
    from dispatcher.weight_keeper import GcPlan, Policy, WeightKeeper

WEIGHTS: Table = {
    "export": CommandEntry(
        "cli.weights:export", "One self-contained .safetensors file of a trial's weights."
    ),
    "du": CommandEntry("cli.weights:du", "What the weights take on disk, trial by trial."),
    "gc": CommandEntry("cli.weights:gc", "Remove weights that nothing needs."),
    "versions": CommandEntry(
        "cli.weights_stores:versions", "The versions of shared stores that are there."
    ),
    "pin": CommandEntry("cli.weights:pin", "Keep a trial's weights whatever retention says."),
    "unpin": CommandEntry("cli.weights:unpin", "Let retention decide again."),
}


def export(
    trial: Trial,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="trial-TRIAL.safetensors if not given."),
    ] = None,
    key: Annotated[
        str,
        typer.Option(metavar="NAME", help="Only this part of the saved state, such as 'model'."),
    ] = "",
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Write a trial's weights into one file that any tool reads, inherited tensors included.

    Every digest is checked. For weights that bequeath saved (`save_weights`).
    """
    from dispatcher import queries
    from dispatcher.experiments.find import find_one
    from trial_runtime.errors import TrialRuntimeError
    from trial_runtime.weights.loading.exporting import export as export_weights

    located = find_one(experiment, folder)
    with queries.ExperimentReader.open(located.folder) as reader:
        one = queries.trial(reader, trial).trial
    if one.save_path is None or one.weights_digest is None:
        raise UserError(f"trial {trial} has committed no weights", where=located.id)
    if one.weights_kind != "bequeath":
        raise UserError(
            f"trial {trial} wrote its weights by its own means",
            hint=f"they lie in {_root(located)}/{one.save_path}",
            where=located.id,
        )
    with _keeper(located) as keeper:
        if trial in keeper.removed_trials():
            raise UserError(f"the weights of trial {trial} were removed", where=located.id)
    unseen = _unseen(located, trial)
    if unseen:
        raise UserError(unseen, hint="export them on a machine that sees them", where=located.id)
    target = out or Path(f"trial-{trial}.safetensors")
    config = _config(located)
    try:
        with _readable_root(located, one.save_path, one.weights_digest) as root:
            written = export_weights(
                one.save_path,
                target,
                key=key,
                digest=one.weights_digest,
                root=root,
                read_roots=tuple(str(path) for path in config.weights_read_roots),
            )
    except TrialRuntimeError as error:
        raise _translated(error) from error
    except OSError as error:
        raise BackendError(f"cannot be written: {error.strerror}", where=str(target)) from error
    if as_json:
        print_json({"experiment": located.id, "trial": trial, "file": written.path,
                    "tensors": written.tensors, "bytes": written.nbytes})  # fmt: skip
    else:
        tensors = formatting.count(written.tensors, "tensor")
        say(f"{target}: {tensors}, {formatting.size(written.nbytes)}")


def du(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Show what each trial's weights take: files of its own, and tensors in ancestors' files; and
    what versions of shared stores take."""
    from dispatcher.cli.weights_stores import show_stores_use, stores_use
    from dispatcher.experiments.find import find_one

    located = find_one(experiment, folder)
    with _keeper(located) as keeper:
        use = keeper.disk_use()
    stores = stores_use(located, _config(located))
    if as_json:
        beside = {"stores": stores, "unseen": _unseen(located)}
        print_json({"experiment": located.id, **use.to_json(), **beside})
        return
    columns = (
        Column("trial", right=True),
        Column("own", right=True),
        Column("inherited", right=True),
        Column("files", right=True),
        Column(""),
        Column("path", shrink=True),
    )
    if use.trials:
        print_table(
            columns,
            [
                (
                    str(one.trial),
                    formatting.size(one.own_bytes),
                    formatting.size(one.inherited_bytes),
                    str(one.files),
                    one.problem or ("pinned" if one.pinned else ""),
                    one.path,
                )
                for one in use.trials
            ],
        )
    freed = f"; {formatting.size(use.removed_bytes)} removed so far" if use.removed_bytes else ""
    say(f"{formatting.size(use.total_bytes)} below {use.root}{freed}")
    show_stores_use(stores)
    if unseen := _unseen(located):
        note(f"{unseen}: they are not counted")


def gc(
    experiment: Experiment = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="all, best:N, last-generations:N or ancestors-of-live; the file's if not given.",
            show_default=False,
        ),
    ] = None,
    keep_versions: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Keep at least the newest N versions of each shared store; 0: the number in the "
            "file.",
        ),
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")
    ] = False,
    yes: Yes = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Remove weights that no policy, no pin, and nothing live or waiting needs, and old versions of
    shared stores.

    Files that kept weights inherit tensors from stay. While an experiment runs its head keeps
    to the file's policy, and only --dry-run is possible.
    """
    from dispatcher.cli.weights_stores import removable_versions, show_swept, sweep_stores
    from dispatcher.experiments.find import find_one
    from dispatcher.store.leadership import Leadership

    located = find_one(experiment, folder, change=not dry_run)
    policy = _policy(keep) if keep is not None else None
    versions: dict[str, Any]
    if dry_run:
        with _keeper(located, policy) as keeper:
            plan = keeper.plan()
        going = removable_versions(located, _config(located), keep_versions)
        versions = {"versions": len(going)}
    else:
        # While this process holds the lead no head can propose a child of removed weights.
        with Leadership.keep_heads_out(located.folder), _keeper(located, policy) as keeper:
            plan = keeper.plan()
            if plan.doomed:
                many = formatting.count(len(plan.doomed), "trial")
                confirmed(f"Remove the weights of {many}, {formatting.size(plan.nbytes)}?", yes)
            plan = keeper.sweep(lambda trials: trials)
            swept = sweep_stores(located, _config(located), keep_versions)
        versions = {} if swept is None else swept.to_json()
    if as_json:
        beside = {"stores": versions, "unseen": _unseen(located)}
        print_json({"experiment": located.id, **plan.to_json(), **beside})
        return
    _show(plan)
    if versions.get("versions") or versions.get("leftovers"):
        show_swept(versions, done=plan.done)
    if unseen := _unseen(located):
        note(f"{unseen}: all of them stay")


def _show(plan: GcPlan) -> None:
    columns = (
        Column("trial", right=True),
        Column("frees", right=True),
        Column("path", shrink=True),
    )
    if plan.doomed:
        print_table(
            columns,
            [(str(one.trial), formatting.size(one.nbytes), one.path) for one in plan.doomed],
        )
    word = "removed" if plan.done else "would be removed"
    say(f"{formatting.count(plan.files, 'file')}, {formatting.size(plan.nbytes)} {word}; "
        f"the weights of {formatting.count(len(plan.kept), 'trial')} stay")  # fmt: skip
    if plan.doubts:
        note(plan.doubts)
    if plan.shared:
        many = formatting.count(len(plan.shared), "file")
        note(f"{many} of these stay: kept trials inherit from them")


def pin(
    trial: Trial,
    text: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="The reason, kept with the pin.")
    ] = "",
    experiment: OfExperiment = None,
    folder: Folder = None,
) -> None:
    """Keep a trial's weights whatever retention says."""
    from dispatcher.experiments.find import find_one

    located = find_one(experiment, folder)
    with _keeper(located) as keeper:
        keeper.pin(trial, text)
    say(f"the weights of trial {trial} of {located.id} are pinned")


def unpin(trial: Trial, experiment: OfExperiment = None, folder: Folder = None) -> None:
    """Let retention decide on a trial's weights again."""
    from dispatcher.experiments.find import find_one

    located = find_one(experiment, folder)
    with _keeper(located) as keeper:
        keeper.unpin(trial)
    say(f"the weights of trial {trial} of {located.id} are no longer pinned")


def _policy(text: str) -> Policy:
    from dispatcher.weight_keeper import Policy

    word, _, count = text.partition(":")
    if count and not count.isdigit():
        raise typer.BadParameter(f"{text!r} is not POLICY:NUMBER", param_hint="'--keep'")
    return Policy.of(word, int(count) if count else None)


@contextmanager
def _keeper(located: LocatedExperiment, policy: Policy | None = None) -> Iterator[WeightKeeper]:
    from dispatcher.folders.experiment_folder import ExperimentFolder
    from dispatcher.store import SqliteWeightsLedger
    from dispatcher.weight_keeper import Policy, WeightKeeper
    from dispatcher.wiring.remote_roots import storage_of
    from dispatcher.wiring.storage_domains import unseen_domains

    config = _config(located)
    if policy is None:
        policy = Policy.of(config.retention.keep, config.retention.count)
    journal = ExperimentFolder(located.folder).journal
    ledger = SqliteWeightsLedger.open(journal, unseen_domains(config))
    try:
        maximize = located.mode == "maximize"
        storage = storage_of(config, ExperimentFolder(located.folder))
        yield WeightKeeper(located.folder, storage, ledger, policy, maximize=maximize)
    finally:
        ledger.close()


def _unseen(located: LocatedExperiment, trial: int | None = None) -> str:
    """Return a sentence on weights that this machine does not see; empty if it sees all.

    With a trial, only on the weights of that trial.
    """
    from dispatcher.folders.experiment_folder import ExperimentFolder
    from dispatcher.store import SqliteWeightsLedger
    from dispatcher.wiring.storage_domains import unseen_domains, unseen_weights

    config = _config(located)
    domains = unseen_domains(config)
    if not domains:
        return ""
    ledger = SqliteWeightsLedger.open(ExperimentFolder(located.folder).journal, domains)
    try:
        workers = ledger.unseen()
    finally:
        ledger.close()
    return unseen_weights(config, {t: w for t, w in workers.items() if trial in (None, t)})


def _config(located: LocatedExperiment) -> ExperimentConfig:
    from dispatcher.experiment.snapshot import from_json
    from dispatcher.folders.experiment_folder import ExperimentFolder

    path = ExperimentFolder(located.folder).config
    return from_json(path.read_text(encoding="utf-8"), str(path))


def _root(located: LocatedExperiment) -> Path | str:
    """Return the weights root for messages: a folder, or a URL."""
    return _config(located).weights_root or located.folder / "weights"


@contextmanager
def _readable_root(located: LocatedExperiment, save_path: str, digest: str) -> Iterator[str]:
    """Give a folder that holds these weights; a temporary one if the root is no folder."""
    from dispatcher.folders.experiment_folder import ExperimentFolder
    from dispatcher.wiring.remote_roots import local_copy, remote_root
    from dispatcher.wiring.weights import weights_root

    config, folder = _config(located), ExperimentFolder(located.folder)
    if remote_root(config, folder.id) is None:
        yield str(weights_root(config, folder))
    else:
        with local_copy(config, folder, save_path, digest) as here:
            yield here


def _translated(error: Exception) -> UserError:
    hint, where = getattr(error, "hint", ""), getattr(error, "where", "")
    return UserError(getattr(error, "message", str(error)), hint=hint, where=where)
