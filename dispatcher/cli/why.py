"""``bequeath why``: one sentence a user can act on."""

from __future__ import annotations

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.terminal.console import print_json, say
from dispatcher.terminal.safe_text import safe_text


def why(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Explain in one sentence why nothing, or not more, is running.

    `--json` adds the cause as a value of an enumeration.
    """
    from dispatcher.experiments.handle import ExperimentHandle

    handle = ExperimentHandle.find(experiment, folder)
    cause, text = handle.why()
    if as_json:
        print_json({"experiment": handle.id, "cause": cause, "text": text})
    else:
        say(safe_text(text))
