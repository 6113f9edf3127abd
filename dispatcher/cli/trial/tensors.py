"""``bequeath trial tensors``: which tensors of a trial's weights came from whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Folder, Json, OfExperiment, Trial, context_for
from dispatcher.safe_text import safe_text
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, heading, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.operations.tensor_answers import TrialTensors

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

    answer = perform(
        TRIAL_TENSORS,
        context_for("trial tensors", folder),
        ListTensors(limit=number),
        experiment=experiment,
        trial=trial,
    )
    if as_json:
        print_json(answer)
    elif answer.why:
        note(f"of trial {trial} no tensors are known: {answer.why}")
    else:
        _show(answer, each=each)


def _show(answer: TrialTensors, *, each: bool) -> None:
    above = "" if answer.parent is None else f", against trial {answer.parent}"
    say(
        heading(
            f"trial {answer.trial}  {answer.count} tensors, {formatting.size(answer.bytes)}{above}"
        )
    )
    for change, many in answer.changes.items():
        say(f"{change:>10}  {many.tensors:>6}  {formatting.size(many.bytes):>10}")
    if answer.gone:
        say(f"{'gone':>10}  {len(answer.gone):>6}")
    say()
    print_table(
        (Column("first written by"), Column("generations ago", right=True),
         Column("tensors", right=True), Column("bytes", right=True)),
        [
            (
                _by(one.trial, answer.trial),
                formatting.NOTHING if one.generations is None else str(one.generations),
                str(one.tensors),
                formatting.size(one.bytes),
            )
            for one in answer.ancestors[:_ANCESTORS]
        ],
    )  # fmt: skip
    say()
    _show_each(answer) if each else _show_groups(answer)
    for sentence in answer.notes:
        note(sentence)


def _by(trial: int | None, own: int) -> str:
    if trial is None:
        return "not known"
    return "itself" if trial == own else f"trial {trial}"


def _show_groups(answer: TrialTensors) -> None:
    columns = (Column("part"), Column("tensors", right=True), Column("bytes", right=True),
               Column("", shrink=True), Column("from"))  # fmt: skip
    rows = [
        (
            safe_text(one.name) or formatting.NOTHING,
            str(one.tensors),
            formatting.size(one.bytes),
            ", ".join(f"{many.tensors} {change}" for change, many in one.changes.items()),
            ", ".join(_by(trial, answer.trial) for trial in one.origins[:4]),
        )
        for one in answer.groups
    ]
    print_table(columns, rows)


def _show_each(answer: TrialTensors) -> None:
    columns = (Column("tensor", shrink=True), Column("change"), Column("shape"),
               Column("bytes", right=True), Column("before"), Column("from"))  # fmt: skip
    rows = [
        (
            safe_text(one.name),
            one.change.value,
            f"{one.dtype} {'×'.join(map(str, one.shape)) or 'scalar'}",
            formatting.size(one.bytes),
            safe_text(one.was) or one.before,
            _by(one.origin, answer.trial),
        )
        for one in answer.tensors
    ]
    print_table(columns, rows)
    if answer.count > len(answer.tensors):
        say(f"… {answer.count - len(answer.tensors)} more")
