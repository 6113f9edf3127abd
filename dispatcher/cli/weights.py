"""``bequeath weights``: what the weights of an experiment take, and taking them along."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli import words
from dispatcher.cli.arguments import (
    Experiment,
    Folder,
    Json,
    OfExperiment,
    Trial,
    Yes,
    confirmed,
)
from dispatcher.cli.console import Column, note, print_json, print_table, say
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import BackendError, UserError

if TYPE_CHECKING:
    from dispatcher.experiment import ExperimentConfig
    from dispatcher.finding.find import LocatedExperiment
    from dispatcher.weight_keeper import GcPlan, Policy, WeightKeeper

WEIGHTS: Table = {
    "export": CommandEntry(
        "weights:export", "One self-contained .safetensors file of a trial's weights."
    ),
    "du": CommandEntry("weights:du", "What the weights take on disk, trial by trial."),
    "gc": CommandEntry("weights:gc", "Remove weights that nothing needs."),
    "versions": CommandEntry(
        "weights_stores:versions", "The versions of shared stores that are there."
    ),
    "pin": CommandEntry("weights:pin", "Keep a trial's weights whatever retention says."),
    "unpin": CommandEntry("weights:unpin", "Let retention decide again."),
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
    from dispatcher.finding.find import find_one
    from trial_runtime.errors import TrialRuntimeError
    from trial_runtime.weights.exporting import export as export_weights

    found = find_one(experiment, folder)
    with queries.ExperimentReader.open(found.folder) as reader:
        one = queries.trial(reader, trial).trial
    if one.save_path is None or one.weights_digest is None:
        raise UserError(f"trial {trial} has committed no weights", where=found.id)
    if one.weights_kind != "bequeath":
        raise UserError(
            f"trial {trial} wrote its weights by its own means",
            hint=f"they lie in {_root(found)}/{one.save_path}",
            where=found.id,
        )
    with _keeper(found) as keeper:
        if trial in keeper.removed_trials():
            raise UserError(f"the weights of trial {trial} were removed", where=found.id)
    unseen = _unseen(found, trial)
    if unseen:
        raise UserError(unseen, hint="export them on a machine that sees them", where=found.id)
    target = out or Path(f"trial-{trial}.safetensors")
    config = _config(found)
    try:
        with _readable_root(found, one.save_path, one.weights_digest) as root:
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
        print_json({"experiment": found.id, "trial": trial, "file": written.path,
                    "tensors": written.tensors, "bytes": written.nbytes})  # fmt: skip
    else:
        tensors = words.count(written.tensors, "tensor")
        say(f"{target}: {tensors}, {words.size(written.nbytes)}")


def du(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Show what each trial's weights take: files of its own, and tensors in ancestors' files; and
    what versions of shared stores take."""
    from dispatcher.cli.weights_stores import show_stores_use, stores_use
    from dispatcher.finding.find import find_one

    found = find_one(experiment, folder)
    with _keeper(found) as keeper:
        use = keeper.disk_use()
    stores = stores_use(found, _config(found))
    if as_json:
        told = {"stores": stores, "unseen": _unseen(found)}
        print_json({"experiment": found.id, **use.to_json(), **told})
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
                    words.size(one.own_bytes),
                    words.size(one.inherited_bytes),
                    str(one.files),
                    one.problem or ("pinned" if one.pinned else ""),
                    one.path,
                )
                for one in use.trials
            ],
        )
    freed = f"; {words.size(use.removed_bytes)} removed so far" if use.removed_bytes else ""
    say(f"{words.size(use.total_bytes)} below {use.root}{freed}")
    show_stores_use(stores)
    if unseen := _unseen(found):
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
            help="Of each shared store the newest N versions, at least; 0: as the file says.",
        ),
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go; remove nothing.")
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
    from dispatcher.cli.weights_stores import show_swept, sweep_stores, would_go
    from dispatcher.finding.find import find_one
    from dispatcher.store.leadership import Leadership

    found = find_one(experiment, folder, change=not dry_run)
    policy = _policy(keep) if keep is not None else None
    versions: dict[str, Any]
    if dry_run:
        with _keeper(found, policy) as keeper:
            plan = keeper.plan()
        going = would_go(found, _config(found), keep_versions)
        versions = {"versions": len(going)}
    else:
        # Holding the lead, no head can propose a child of what goes.
        with Leadership.keep_heads_out(found.folder), _keeper(found, policy) as keeper:
            plan = keeper.plan()
            if plan.doomed:
                many = words.count(len(plan.doomed), "trial")
                confirmed(f"Remove the weights of {many}, {words.size(plan.nbytes)}?", yes)
            plan = keeper.sweep(lambda trials: trials)
            swept = sweep_stores(found, _config(found), keep_versions)
        versions = {} if swept is None else swept.to_json()
    if as_json:
        told = {"stores": versions, "unseen": _unseen(found)}
        print_json({"experiment": found.id, **plan.to_json(), **told})
        return
    _show(plan)
    if versions.get("versions") or versions.get("leftovers"):
        show_swept(versions, done=plan.done)
    if unseen := _unseen(found):
        note(f"{unseen}: all of them stay")


def _show(plan: GcPlan) -> None:
    columns = (
        Column("trial", right=True),
        Column("frees", right=True),
        Column("path", shrink=True),
    )
    if plan.doomed:
        print_table(
            columns, [(str(one.trial), words.size(one.nbytes), one.path) for one in plan.doomed]
        )
    word = "removed" if plan.done else "would be removed"
    say(f"{words.count(plan.files, 'file')}, {words.size(plan.nbytes)} {word}; "
        f"the weights of {words.count(len(plan.kept), 'trial')} stay")  # fmt: skip
    if plan.doubts:
        note(plan.doubts)
    if plan.shared:
        note(
            f"{words.count(len(plan.shared), 'file')} of these stay: kept trials inherit from them"
        )


def pin(
    trial: Trial,
    text: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="Why, for whoever wonders later.")
    ] = "",
    experiment: OfExperiment = None,
    folder: Folder = None,
) -> None:
    """Keep a trial's weights whatever retention says."""
    from dispatcher.finding.find import find_one

    found = find_one(experiment, folder)
    with _keeper(found) as keeper:
        keeper.pin(trial, text)
    say(f"the weights of trial {trial} of {found.id} are pinned")


def unpin(trial: Trial, experiment: OfExperiment = None, folder: Folder = None) -> None:
    """Let retention decide on a trial's weights again."""
    from dispatcher.finding.find import find_one

    found = find_one(experiment, folder)
    with _keeper(found) as keeper:
        keeper.unpin(trial)
    say(f"the weights of trial {trial} of {found.id} are no longer pinned")


def _policy(text: str) -> Policy:
    from dispatcher.weight_keeper import Policy

    word, _, count = text.partition(":")
    if count and not count.isdigit():
        raise typer.BadParameter(f"{text!r} is not POLICY:NUMBER", param_hint="'--keep'")
    return Policy.of(word, int(count) if count else None)


@contextmanager
def _keeper(found: LocatedExperiment, policy: Policy | None = None) -> Iterator[WeightKeeper]:
    from dispatcher.folders import ExperimentFolder
    from dispatcher.store import SqliteWeightsLedger
    from dispatcher.weight_keeper import Policy, WeightKeeper
    from dispatcher.wiring.remote_roots import storage_of
    from dispatcher.wiring.storage_domains import unseen_domains

    config = _config(found)
    if policy is None:
        policy = Policy.of(config.retention.keep, config.retention.count)
    journal = ExperimentFolder(found.folder).journal
    ledger = SqliteWeightsLedger.open(journal, unseen_domains(config))
    try:
        maximize = found.mode == "maximize"
        shelf = storage_of(config, ExperimentFolder(found.folder))
        yield WeightKeeper(found.folder, shelf, ledger, policy, maximize=maximize)
    finally:
        ledger.close()


def _unseen(found: LocatedExperiment, trial: int | None = None) -> str:
    """Whose weights, or whether this trial's, lie where this machine does not see them."""
    from dispatcher.folders import ExperimentFolder
    from dispatcher.store import SqliteWeightsLedger
    from dispatcher.wiring.storage_domains import unseen_domains, unseen_weights

    config = _config(found)
    elsewhere = unseen_domains(config)
    if not elsewhere:
        return ""
    ledger = SqliteWeightsLedger.open(ExperimentFolder(found.folder).journal, elsewhere)
    try:
        workers = ledger.unseen()
    finally:
        ledger.close()
    return unseen_weights(config, {t: w for t, w in workers.items() if trial in (None, t)})


def _config(found: LocatedExperiment) -> ExperimentConfig:
    from dispatcher.experiment.snapshot import from_json
    from dispatcher.folders import ExperimentFolder

    path = ExperimentFolder(found.folder).config
    return from_json(path.read_text(encoding="utf-8"), str(path))


def _root(found: LocatedExperiment) -> Path | str:
    """For people: a folder, or a URL."""
    return _config(found).weights_root or found.folder / "weights"


@contextmanager
def _readable_root(found: LocatedExperiment, save_path: str, digest: str) -> Iterator[str]:
    """A folder with these weights in it; a temporary one if the root is no folder."""
    from dispatcher.folders import ExperimentFolder
    from dispatcher.wiring.remote_roots import local_copy, remote_root
    from dispatcher.wiring.weights import weights_root

    config, folder = _config(found), ExperimentFolder(found.folder)
    if remote_root(config, folder.id) is None:
        yield str(weights_root(config, folder))
    else:
        with local_copy(config, folder, save_path, digest) as here:
            yield here


def _translated(error: Exception) -> UserError:
    hint, where = getattr(error, "hint", ""), getattr(error, "where", "")
    return UserError(getattr(error, "message", str(error)), hint=hint, where=where)
