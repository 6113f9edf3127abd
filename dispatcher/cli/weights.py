"""``bequeath weights``: an experiment's weights and shared stores: disk use, removal, export."""

from __future__ import annotations

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
    context_for,
)
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.operations.answers import MeasuredWeights, SharedStore, WeightsSwept

WEIGHTS: Table = {
    "export": CommandEntry(
        "cli.weights:export", "One self-contained .safetensors file of a trial's weights."
    ),
    "du": CommandEntry("cli.weights:du", "What the weights take on disk, trial by trial."),
    "gc": CommandEntry("cli.weights:gc", "Remove weights that nothing needs."),
    "versions": CommandEntry(
        "cli.weights:versions", "The versions of shared stores that are there."
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
    from dispatcher.operations.arguments import ExportWeights
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import WEIGHTS_EXPORT

    target = out or Path(f"trial-{trial}.safetensors")
    wish = ExportWeights(file=str(target), key=key)
    context = context_for("weights export", folder)
    written = perform(WEIGHTS_EXPORT, context, wish, experiment=experiment, trial=trial)
    if as_json:
        print_json(written)
    else:
        tensors = formatting.count(written.tensors, "tensor")
        say(f"{target}: {tensors}, {formatting.size(written.bytes)}")


def du(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Show what each trial's weights take: files of its own, and tensors in ancestors' files; and
    what versions of shared stores take."""
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import WEIGHTS_DU

    use = perform(WEIGHTS_DU, context_for("weights du", folder), experiment=experiment)
    if as_json:
        print_json(use)
        return
    _show_use(use)
    _show_stores_use(use.stores)
    if use.unseen:
        note(f"{use.unseen}: they are not counted")


def _show_use(use: MeasuredWeights) -> None:
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
    from dispatcher.operations.arguments import SweepWeights
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import WEIGHTS_GC, WEIGHTS_PLAN

    _demand_policy(keep)
    wish = SweepWeights(keep=keep or "", keep_versions=keep_versions)
    context = context_for("weights gc", folder, yes=yes)
    swept = perform(WEIGHTS_PLAN if dry_run else WEIGHTS_GC, context, wish, experiment=experiment)
    if as_json:
        print_json(swept)
        return
    _show_removal(swept)
    if swept.stores.get("versions") or swept.stores.get("leftovers"):
        _show_swept(swept.stores, done=swept.done)
    if swept.unseen:
        note(f"{swept.unseen}: all of them stay")


def _show_removal(swept: WeightsSwept) -> None:
    columns = (
        Column("trial", right=True),
        Column("frees", right=True),
        Column("path", shrink=True),
    )
    if swept.weights:
        print_table(
            columns,
            [(str(one.trial), formatting.size(one.bytes), one.path) for one in swept.weights],
        )
    word = "removed" if swept.done else "would be removed"
    say(f"{formatting.count(swept.files, 'file')}, {formatting.size(swept.bytes)} {word}; "
        f"the weights of {formatting.count(len(swept.kept), 'trial')} stay")  # fmt: skip
    if swept.doubtful:
        from dispatcher.weight_keeper.plan import doubts

        note(doubts(swept.doubtful))
    if swept.shared:
        many = formatting.count(len(swept.shared), "file")
        note(f"{many} of these stay: kept trials inherit from them")


def pin(
    trial: Trial,
    text: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="The reason, kept with the pin.")
    ] = "",
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Keep a trial's weights whatever retention says."""
    from dispatcher.operations.arguments import PinWeights
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import WEIGHTS_PIN

    context = context_for("weights pin", folder)
    done = perform(WEIGHTS_PIN, context, PinWeights(note=text), experiment=experiment, trial=trial)
    if as_json:
        print_json(done)
    else:
        say(f"the weights of trial {trial} of {done.experiment} are pinned")


def unpin(
    trial: Trial, experiment: OfExperiment = None, folder: Folder = None, as_json: Json = False
) -> None:
    """Let retention decide on a trial's weights again."""
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import WEIGHTS_UNPIN

    context = context_for("weights unpin", folder)
    done = perform(WEIGHTS_UNPIN, context, experiment=experiment, trial=trial)
    if as_json:
        print_json(done)
    else:
        say(f"the weights of trial {trial} of {done.experiment} are no longer pinned")


def _demand_policy(text: str | None) -> None:
    """Refuse what is no policy at all as a fault of the command line."""
    count = (text or "").partition(":")[2]
    if text == "" or (count and not count.isdecimal()):
        raise typer.BadParameter(f"{text!r} is not POLICY:NUMBER", param_hint="'--keep'")


def versions(
    experiment: Experiment = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="NAME", help="Only of this shared store.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """List the versions of shared stores that are there, whose they are, and why they stay."""
    from dispatcher.operations.arguments import ListVersions
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import WEIGHTS_VERSIONS

    wanted = ListVersions(store=store)
    context = context_for("weights versions", folder)
    answer = perform(WEIGHTS_VERSIONS, context, wanted, experiment=experiment)
    if as_json:
        print_json(answer)
        return
    _show_versions(answer.stores)


def _show_versions(stores: dict[str, SharedStore]) -> None:
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
        for each in stores.values()
        for one in each.versions
    ]
    if rows:
        print_table(columns, rows)
    for name, each in stores.items():
        there = formatting.count(len(each.versions), "version")
        say(f"{name}: {there} of {each.published} published")
    if not stores:
        note("nothing was published to a shared store")


def _show_stores_use(use: dict[str, dict[str, Any]]) -> None:
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


def _show_swept(swept: dict[str, Any], *, done: bool) -> None:
    """Print how many versions were removed, or would be (``done`` is false)."""
    word = "removed" if done else "would be removed"
    text = f"{formatting.count(swept['versions'], 'version')} of shared stores {word}"
    if swept.get("leftovers"):
        text += f", and {formatting.count(swept['leftovers'], 'folder')} that died publishers left"
    if done:
        text += f": {formatting.count(swept['files'], 'file')}, {formatting.size(swept['bytes'])}"
    say(text)
