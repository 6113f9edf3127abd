"""``bequeath why``: one sentence a user can act on."""

from __future__ import annotations

from pathlib import Path

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.terminal.console import print_json, say
from dispatcher.terminal.safe_text import safe_text


def why(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Explain in one sentence why nothing, or not more, is running.

    `--json` adds the cause as a value of an enumeration.
    """
    from dispatcher.experiments.find import find_one

    located = find_one(experiment, folder, others=True)
    cause, text = explain(located.folder)
    if as_json:
        print_json({"experiment": located.id, "cause": cause, "text": text})
    else:
        say(safe_text(text))


def explain(folder: Path) -> tuple[str, str]:
    """See :func:`dispatcher.experiments.why.explain`, which this loads when it is wanted."""
    from dispatcher.experiments import why

    return why.explain(folder)
