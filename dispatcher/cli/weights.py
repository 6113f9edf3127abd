"""``bequeath weights``: disk use, removal and export of an experiment's weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.weight_keeper import DiskUse, GcPlan, Policy

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
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.USE)
    target = out or Path(f"trial-{trial}.safetensors")
    written = handle.weights.export(trial, target, key=key)
    if as_json:
        print_json({"experiment": handle.id, "trial": trial, "file": written.path,
                    "tensors": written.tensors, "bytes": written.nbytes})  # fmt: skip
    else:
        tensors = formatting.count(written.tensors, "tensor")
        say(f"{target}: {tensors}, {formatting.size(written.nbytes)}")


def du(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Show what each trial's weights take: files of its own, and tensors in ancestors' files; and
    what versions of shared stores take."""
    from dispatcher.cli.weights_stores import show_stores_use
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.USE)
    weights = handle.weights
    use, stores = weights.use()
    unseen = weights.unseen()
    if as_json:
        beside = {"stores": stores, "unseen": unseen}
        print_json({"experiment": handle.id, **use.to_json(), **beside})
        return
    _show_use(use)
    show_stores_use(stores)
    if unseen:
        note(f"{unseen}: they are not counted")


def _show_use(use: DiskUse) -> None:
    columns = (
        Column("trial", right=True),
        Column("own", right=True),
        Column("inherited", right=True),
        Column("files", right=True),
        Column(""),
        Column("path", shrink=True),
    )
    rows = [
        (
            str(one.trial),
            formatting.size(one.own_bytes),
            formatting.size(one.inherited_bytes),
            str(one.files),
            one.problem or ("pinned" if one.pinned else ""),
            one.path,
        )
        for one in use.trials
    ]
    if rows:
        print_table(columns, rows)
    freed = f"; {formatting.size(use.removed_bytes)} removed so far" if use.removed_bytes else ""
    say(f"{formatting.size(use.total_bytes)} below {use.root}{freed}")


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
    from dispatcher.cli.weights_stores import show_swept
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    def confirm(plan: GcPlan) -> None:
        many = formatting.count(len(plan.doomed), "trial")
        confirmed(f"Remove the weights of {many}, {formatting.size(plan.nbytes)}?", yes)

    purpose = Purpose.USE if dry_run else Purpose.CHANGE
    handle = ExperimentHandle.find(experiment, folder, purpose)
    weights = handle.weights
    policy = _policy(keep) if keep is not None else None
    if dry_run:
        plan, versions = weights.plan(policy, keep_versions)
    else:
        plan, versions = weights.remove(confirm, policy, keep_versions)
    unseen = weights.unseen()
    if as_json:
        beside = {"stores": versions, "unseen": unseen}
        print_json({"experiment": handle.id, **plan.to_json(), **beside})
        return
    _show(plan)
    if versions.get("versions") or versions.get("leftovers"):
        show_swept(versions, done=plan.done)
    if unseen:
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
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.USE)
    handle.weights.pin(trial, text)
    say(f"the weights of trial {trial} of {handle.id} are pinned")


def unpin(trial: Trial, experiment: OfExperiment = None, folder: Folder = None) -> None:
    """Let retention decide on a trial's weights again."""
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.USE)
    handle.weights.unpin(trial)
    say(f"the weights of trial {trial} of {handle.id} are no longer pinned")


def _policy(text: str) -> Policy:
    from dispatcher.weight_keeper import Policy

    word, _, count = text.partition(":")
    if count and not count.isdigit():
        raise typer.BadParameter(f"{text!r} is not POLICY:NUMBER", param_hint="'--keep'")
    return Policy.of(word, int(count) if count else None)
