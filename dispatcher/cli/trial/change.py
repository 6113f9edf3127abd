"""``bequeath trial kill`` and ``trial submit``: requests to a running head."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Folder, Json, OfExperiment, context_for
from dispatcher.errors import UserError
from dispatcher.terminal.console import print_json, say

if TYPE_CHECKING:
    from dispatcher.operations.answers import KilledTrial


def kill(
    trials: Annotated[list[int], typer.Argument(metavar="TRIAL", min=0, help="Numbers of trials.")],
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """End trials, running or not yet started. They count as failed and are not retried."""
    from dispatcher.operations.arguments import KillTrials
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import TRIAL_KILL

    def tell(one: KilledTrial) -> None:  # at once: the next number may be refused
        if not as_json:
            say(f"trial {one.trial}: {_became(one)}")

    context = context_for("trial kill", folder, part=tell)
    answer = perform(TRIAL_KILL, context, KillTrials(trials=trials), experiment=experiment)
    if as_json:
        print_json(answer)


def _became(one: KilledTrial) -> str:
    """Return the outcome of a request to end a trial."""
    if one.outcome:
        return f"was over already: {one.outcome}"
    if one.state == "running":
        return "is being ended"
    return f"ended; it was {one.before}" if one.before else one.state


def submit(
    parameters: Annotated[
        str,
        typer.Argument(
            metavar="PARAMETERS",
            help="JSON text, @FILE with it, or - to read it from stdin.",
            show_default=False,
        ),
    ],
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Run a trial with parameters of your own. Prints its number.

    It gets a number like all others and may be a parent; with a `save_path` it bequeaths,
    with a `restore_path` it inherits.
    """
    from dispatcher.operations.arguments import SubmitTrial
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import TRIAL_SUBMIT

    wish = SubmitTrial(parameters=_read(parameters))
    answer = perform(TRIAL_SUBMIT, context_for("trial submit", folder), wish, experiment=experiment)
    if as_json:
        print_json(answer)
    else:
        say(str(answer.trial))


def _read(text: str) -> dict[str, Any]:
    where = "PARAMETERS"
    try:
        if text == "-":
            where, text = "stdin", sys.stdin.read()
        elif text.startswith("@"):
            where, text = text[1:], Path(text[1:]).expanduser().read_text(encoding="utf-8")
        values = json.loads(text)
    except (OSError, ValueError) as error:
        raise UserError(
            f"no JSON can be read: {error}",
            hint="""write e.g. '{"lr": 0.01, "width": 64}', or @FILE""",
            where=where,
        ) from error
    if not isinstance(values, dict):
        raise UserError("parameters must be a JSON object", where=where)
    return values
