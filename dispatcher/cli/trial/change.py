"""``bequeath trial kill`` and ``trial submit``: requests to a running head."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dispatcher.cli.arguments import Folder, Json, OfExperiment
from dispatcher.errors import UserError
from dispatcher.terminal.console import print_json, say


def kill(
    trials: Annotated[list[int], typer.Argument(metavar="TRIAL", min=0, help="Numbers of trials.")],
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """End trials, running or not yet started. They count as failed and are not retried."""
    from dispatcher.control.client import HeadClient
    from dispatcher.experiments.find import find_running

    located = find_running(experiment, folder)
    answers: dict[int, dict[str, Any]] = {}
    with HeadClient(located.folder) as client:
        for trial in trials:
            answers[trial] = client.ask("stop_trial", trial=trial)
            if not as_json:  # at once: the next number may be refused
                say(f"trial {trial}: {_became(answers[trial])}")
    if as_json:
        states = {trial: answer["state"] for trial, answer in answers.items()}
        print_json({"experiment": located.id, "trials": states})


def _became(answer: dict[str, Any]) -> str:
    """Return the outcome of a request to end a trial."""
    if answer.get("outcome"):
        return f"was over already: {answer['outcome']}"
    if answer["state"] == "running":
        return "is being ended"
    before = answer.get("before")  # an older head does not send it
    return f"ended; it was {before}" if before else str(answer["state"])


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
    from dispatcher.control.client import HeadClient
    from dispatcher.experiments.find import find_running
    from dispatcher.wiring.submitted import looked_up

    values = _read(parameters)
    located = find_running(experiment, folder)
    values = looked_up(located.folder, values)
    with HeadClient(located.folder) as client:
        trial = client.ask("submit", parameters=values)["trial"]
    if as_json:
        print_json({"experiment": located.id, "trial": trial})
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
