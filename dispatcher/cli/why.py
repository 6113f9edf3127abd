"""``bequeath why``: one sentence a user can act on."""

from __future__ import annotations

from pathlib import Path

from dispatcher.cli import words
from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.cli.console import print_json, say
from dispatcher.cli.safe_text import safe_text

#: The causes that only somebody outside the head can see.
NO_HEAD = "NO_HEAD"
HEAD_SILENT = "HEAD_SILENT"
OVER = "OVER"


def why(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Say in one sentence why nothing, or not more, is running.

    `--json` names the cause by a word of an enumeration as well.
    """
    from dispatcher.finding.find import find_one

    found = find_one(experiment, folder)
    cause, text = explain(found.folder)
    if as_json:
        print_json({"experiment": found.id, "cause": cause, "text": text})
    else:
        say(safe_text(text))


def explain(folder: Path) -> tuple[str, str]:
    """The cause and its sentence: the head's own, or what its folder tells without one."""
    from dispatcher import queries
    from dispatcher.cli.status import asked

    with queries.ExperimentReader.open(folder) as reader:
        summary = queries.experiment_summary(reader)
    status = summary.status
    if status is queries.ExperimentStatus.RUNNING:
        snapshot = asked(folder)
        if snapshot is not None:
            return snapshot["why"]["cause"], snapshot["why"]["text"]
        where = folder / "logs" / "head.log"
        return HEAD_SILENT, (
            f"the head (process {summary.pid}) does not answer: it is starting or ending, or it "
            f"hangs; its log is {where}"
        )
    resume = f"go on with: bequeath resume {folder.name}"
    if status is queries.ExperimentStatus.INTERRUPTED:
        return NO_HEAD, f"the head ended without winding up (a crash, or kill -9); {resume}"
    if status is queries.ExperimentStatus.CREATED:
        return NO_HEAD, f"no head has led this experiment yet; {resume}"
    reason = f": {words.in_one_line(summary.phase_reason)}" if summary.phase_reason else ""
    rest = "" if status is queries.ExperimentStatus.COMPLETED else f"; {resume}"
    verb = "" if status is queries.ExperimentStatus.FAILED else "is "
    return OVER, f"the experiment {verb}{status.value}{reason}{rest}"
