"""The reason why an experiment does not go on, or not faster; with its head or without one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dispatcher import queries
from dispatcher.control.client import HeadClient
from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.errors import PassingBackendError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.ownership import is_ours
from dispatcher.folders.studies import is_study, way_on
from dispatcher.queries import ExperimentSummary

#: The causes that only a process outside the head can see.
NO_HEAD = "NO_HEAD"
HEAD_SILENT = "HEAD_SILENT"
OVER = "OVER"
FOREIGN = "FOREIGN"
LED_BY_PROGRAM = "LED_BY_PROGRAM"

#: Seconds that a head has to answer.
_ANSWER_S = 5.0


class Why(NamedTuple):
    """The reason why nothing, or not more, is running: a word of an enumeration and a sentence."""

    cause: str
    text: str


def explain(folder: Path) -> Why:
    """Return the cause and its sentence: the head's own, or one that its folder shows."""
    with queries.ExperimentReader.open(folder) as reader:
        summary = queries.experiment_summary(reader)
    running = summary.status is queries.ExperimentStatus.RUNNING
    return explained(folder, summary, asked(folder) if running else None)


def explained(folder: Path, summary: ExperimentSummary, snapshot: HeadSnapshot | None) -> Why:
    """The same of what was read and asked already.

    Args:
        folder: of the experiment.
        summary: from its store.
        snapshot: from its head; None if none answers.
    """
    status = summary.status
    if status is queries.ExperimentStatus.RUNNING:
        if snapshot is not None:
            return Why(snapshot.why.cause, snapshot.why.text)
        if not is_ours(folder):
            text = "the experiment is somebody else's: only its owner may ask its head"
            return Why(FOREIGN, text)
        if is_study(folder):
            text = f"this is a study: its program (process {summary.pid}) asks and tells"
            return Why(LED_BY_PROGRAM, text)
        where = ExperimentFolder(folder).head_log
        return Why(
            HEAD_SILENT,
            f"the head (process {summary.pid}) does not answer: it is starting or ending, or it "
            f"hangs; its log is {where}",
        )
    resume = f"go on with: {way_on(folder)}"
    if status is queries.ExperimentStatus.INTERRUPTED:
        return Why(NO_HEAD, f"the head ended without winding up (a crash, or kill -9); {resume}")
    if status is queries.ExperimentStatus.CREATED:
        return Why(NO_HEAD, f"no head has led this experiment yet; {resume}")
    reason = f": {in_one_line(summary.phase_reason)}" if summary.phase_reason else ""
    rest = "" if status is queries.ExperimentStatus.COMPLETED else f"; {resume}"
    verb = "" if status is queries.ExperimentStatus.FAILED else "is "
    return Why(OVER, f"the experiment {verb}{status.value}{reason}{rest}")


def asked(folder: Path, timeout_s: float = _ANSWER_S) -> HeadSnapshot | None:
    """Ask the head for its snapshot; None if it does not answer, or is somebody else's."""
    if not is_ours(folder):
        return None
    try:
        with HeadClient(folder, timeout_s=timeout_s) as client:
            return client.snapshot()
    except PassingBackendError:
        return None


def in_one_line(text: str) -> str:
    """Shorten a reason that holds a traceback to its first line and its last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return text.strip() if len(lines) < 2 else f"{lines[0]}: {lines[-1]}"
