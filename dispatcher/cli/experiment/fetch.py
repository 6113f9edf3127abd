"""``bequeath experiment fetch``: what is still on other machines of what was to be fetched."""

from __future__ import annotations

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.terminal.console import note, print_json, say
from dispatcher.terminal.safe_text import safe_text


def fetch(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Fetch the files of trials on other machines, by the rules of the key `fetch`.

    A running experiment does so by itself; this is for one that ended while a machine was not to
    be reached. What is here already is not fetched again.
    """
    from dispatcher.attempt_files.gathering import Gathering
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.USE)
    workers: dict[str, dict[str, object]] = {}
    for worker, count, error in Gathering(handle.config(), handle.place, note).once():
        workers[worker] = {"attempts": count, "error": None if error is None else error.message}
        if not as_json:
            say(f"{safe_text(worker)}: {count} attempt{'' if count == 1 else 's'}")
            if error is not None:
                note(f"{safe_text(worker)}: {safe_text(error.message)}")
    if as_json:
        print_json({"experiment": handle.id, "workers": workers})
    elif not workers:
        note(f"{handle.id} fetches nothing: its trials run here, or its file says 'never'")
    if any(one["error"] for one in workers.values()):
        raise typer.Exit(ExitCode.ENVIRONMENT)
