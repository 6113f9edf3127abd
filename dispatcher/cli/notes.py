"""``bequeath trial note``, ``tag`` and ``star``, and the same of an experiment."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, OfExperiment, Trial, context_for
from dispatcher.terminal.console import print_json, say
from dispatcher.terminal.notes import print_annotations

if TYPE_CHECKING:
    from dispatcher.operations import answers

_Text = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="Plain text; - reads it from stdin.", show_default=False),
]
_RemoveNote = Annotated[
    int | None,
    typer.Option(
        "--remove",
        metavar="NUMBER",
        min=1,
        help="Take the note of this number away instead.",
        show_default=False,
    ),
]
_Tags = Annotated[
    list[str] | None,
    typer.Argument(metavar="TAG", help="Tags to give.", show_default=False),
]
_RemoveTags = Annotated[
    list[str] | None,
    typer.Option(
        "--remove", metavar="TAG", help="Take this tag away; again for more.", show_default=False
    ),
]
_Off = Annotated[bool, typer.Option("--off", help="Take the star away.")]


def note_trial(
    trial: Trial,
    text: _Text = None,
    remove: _RemoveNote = None,
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Write a note beside a trial; each is kept with its number and time, none is overwritten."""
    from dispatcher.operations.arguments import RemoveNote, WriteNote
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import TRIAL_NOTE, TRIAL_NOTE_REMOVE

    context = context_for("trial note", folder)
    if remove is not None:
        _demand_one(text)
        gone = RemoveNote(number=remove)
        answer = perform(TRIAL_NOTE_REMOVE, context, gone, experiment=experiment, trial=trial)
    else:
        note = WriteNote(text=_read(text))
        answer = perform(TRIAL_NOTE, context, note, experiment=experiment, trial=trial)
    _show(answer, as_json)


def note_experiment(
    text: _Text = None,
    remove: _RemoveNote = None,
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Write a note beside an experiment; each is kept with its number and time."""
    from dispatcher.operations.arguments import RemoveNote, WriteNote
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_NOTE, EXPERIMENT_NOTE_REMOVE

    context = context_for("experiment note", folder)
    if remove is not None:
        _demand_one(text)
        gone = RemoveNote(number=remove)
        answer = perform(EXPERIMENT_NOTE_REMOVE, context, gone, experiment=experiment)
    else:
        note = WriteNote(text=_read(text))
        answer = perform(EXPERIMENT_NOTE, context, note, experiment=experiment)
    _show(answer, as_json)


def tag_trial(
    trial: Trial,
    tags: _Tags = None,
    remove: _RemoveTags = None,
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Give a trial tags, or take them away; others stay. `trial ls --where tag=TAG` finds it."""
    from dispatcher.operations.operation import arguments_of, perform
    from dispatcher.operations.table import TRIAL_TAG

    wish = arguments_of(TRIAL_TAG, _changes(tags, remove))
    context = context_for("trial tag", folder)
    _show(perform(TRIAL_TAG, context, wish, experiment=experiment, trial=trial), as_json)


def tag_experiment(
    tags: _Tags = None,
    remove: _RemoveTags = None,
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Give an experiment tags, or take them away; others stay.

    `dataset:NAME` says which data set it is about, whatever its file says.
    """
    from dispatcher.operations.operation import arguments_of, perform
    from dispatcher.operations.table import EXPERIMENT_TAG

    wish = arguments_of(EXPERIMENT_TAG, _changes(tags, remove))
    context = context_for("experiment tag", folder)
    _show(perform(EXPERIMENT_TAG, context, wish, experiment=experiment), as_json)


def star_trial(
    trial: Trial,
    off: _Off = False,
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Give a trial a star. `trial ls --where starred=true` finds it."""
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import TRIAL_STAR, TRIAL_UNSTAR

    context = context_for("trial star", folder)
    row = TRIAL_UNSTAR if off else TRIAL_STAR
    _show(perform(row, context, experiment=experiment, trial=trial), as_json)


def star_experiment(
    experiment: Experiment = None,
    off: _Off = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Give an experiment a star."""
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_STAR, EXPERIMENT_UNSTAR

    context = context_for("experiment star", folder)
    row = EXPERIMENT_UNSTAR if off else EXPERIMENT_STAR
    _show(perform(row, context, experiment=experiment), as_json)


def _read(text: str | None) -> str:
    if text is None:
        raise typer.BadParameter("is missing: the note, or --remove NUMBER", param_hint="TEXT")
    return sys.stdin.read() if text == "-" else text


def _demand_one(text: str | None) -> None:
    if text is not None:
        raise typer.BadParameter("excludes --remove", param_hint="TEXT")


def _changes(tags: list[str] | None, remove: list[str] | None) -> dict[str, list[str]]:
    if not tags and not remove:
        raise typer.BadParameter("is missing: a tag, or --remove TAG", param_hint="TAG")
    return {"add": tags or [], "remove": remove or []}


def _show(answer: answers.Annotated, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    whose = answer.experiment if answer.trial is None else f"trial {answer.trial}"
    say(whose)
    print_annotations(answer.tags, starred=answer.starred, notes=answer.notes)
