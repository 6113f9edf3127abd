"""``bequeath trial kill`` and ``trial submit``: requests to a running head."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Folder, Json, OfExperiment
from dispatcher.errors import UserError
from dispatcher.terminal.console import print_json, say

if TYPE_CHECKING:
    from dispatcher.experiments.handle import TrialStopped


def kill(
    trials: Annotated[list[int], typer.Argument(metavar="TRIAL", min=0, help="Numbers of trials.")],
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """End trials, running or not yet started. They count as failed and are not retried."""
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.RUNNING)
    states: dict[int, str] = {}
    for one in handle.stop_trials(trials):
        states[one.trial] = one.state
        if not as_json:  # at once: the next number may be refused
            say(f"trial {one.trial}: {_became(one)}")
    if as_json:
        print_json({"experiment": handle.id, "trials": states})


def _became(one: TrialStopped) -> str:
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
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    values = _read(parameters)
    handle = ExperimentHandle.find(experiment, folder, Purpose.RUNNING)
    trial = handle.submit(values)
    if as_json:
        print_json({"experiment": handle.id, "trial": trial})
    else:
        say(str(trial))


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
