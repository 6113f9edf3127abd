"""``bequeath trial tensors``: which tensors of a trial's weights came from whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Folder, Json, OfExperiment, Trial, context_for
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, heading, note, print_json, print_table, say
from dispatcher.terminal.safe_text import safe_text

if TYPE_CHECKING:
    from dispatcher.operations.answers import TrialTensors

#: Ancestors that are shown; the nearest.
_ANCESTORS = 20


def tensors(
    trial: Trial,
    experiment: OfExperiment = None,
    each: Annotated[
        bool, typer.Option("--each", help="List the tensors one by one, not by part of the model.")
    ] = False,
    number: Annotated[
        int,
        typer.Option(
            "-n",
            "--number",
            metavar="NUMBER",
            min=0,
            max=10_000,
            help="With `--each` and `--json`, tensors at most.",
        ),
    ] = 1_000,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show which tensors a trial kept, changed, resized or made, and who wrote them first.

    By the manifests of the weights: a tensor is unchanged if its bytes are the parent's; who wrote
    them first is followed through all generations whose manifests are there.
    """
    from dispatcher.operations.arguments import ListTensors
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import TRIAL_TENSORS

    found = perform(
        TRIAL_TENSORS,
        context_for("trial tensors", folder),
        ListTensors(limit=number),
        experiment=experiment,
        trial=trial,
    )
    if as_json:
        print_json(found)
    elif found.why:
        note(f"of trial {trial} no tensors are known: {found.why}")
    else:
        _show(found, each=each)


def _show(found: TrialTensors, *, each: bool) -> None:
    above = "" if found.parent is None else f", against trial {found.parent}"
    say(
        heading(
            f"trial {found.trial}  {found.count} tensors, {formatting.size(found.bytes)}{above}"
        )
    )
    for change, many in found.changes.items():
        say(f"{change:>10}  {many.tensors:>6}  {formatting.size(many.bytes):>10}")
    if found.gone:
        say(f"{'gone':>10}  {len(found.gone):>6}")
    say()
    print_table(
        (Column("first written by"), Column("generations ago", right=True),
         Column("tensors", right=True), Column("bytes", right=True)),
        [
            (
                _by(one.trial, found.trial),
                formatting.NOTHING if one.generations is None else str(one.generations),
                str(one.tensors),
                formatting.size(one.bytes),
            )
            for one in found.ancestors[:_ANCESTORS]
        ],
    )  # fmt: skip
    say()
    _show_each(found) if each else _show_groups(found)
    for sentence in found.notes:
        note(sentence)


def _by(trial: int | None, own: int) -> str:
    if trial is None:
        return "not known"
    return "itself" if trial == own else f"trial {trial}"


def _show_groups(found: TrialTensors) -> None:
    columns = (Column("part"), Column("tensors", right=True), Column("bytes", right=True),
               Column("", shrink=True), Column("from"))  # fmt: skip
    rows = [
        (
            safe_text(one.name) or formatting.NOTHING,
            str(one.tensors),
            formatting.size(one.bytes),
            ", ".join(f"{many.tensors} {change}" for change, many in one.changes.items()),
            ", ".join(_by(trial, found.trial) for trial in one.origins[:4]),
        )
        for one in found.groups
    ]
    print_table(columns, rows)


def _show_each(found: TrialTensors) -> None:
    columns = (Column("tensor", shrink=True), Column("change"), Column("shape"),
               Column("bytes", right=True), Column("before"), Column("from"))  # fmt: skip
    rows = [
        (
            safe_text(one.name),
            one.change.value,
            f"{one.dtype} {'×'.join(map(str, one.shape)) or 'scalar'}",
            formatting.size(one.bytes),
            safe_text(one.was) or one.before,
            _by(one.origin, found.trial),
        )
        for one in found.tensors
    ]
    print_table(columns, rows)
    if found.count > len(found.tensors):
        say(f"… {found.count - len(found.tensors)} more")
