"""``bequeath nni log``: what the experiment and its trials have printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, find_handle
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.folders.names import HEAD_LOG_NAME, HEAD_STDERR_NAME
from dispatcher.nni.commands.arguments import TrialIds, trial_number

LOG: Table = {
    "stdout": CommandEntry(
        "nni.commands.log:stdout", "The log of the process that leads the experiment."
    ),
    "stderr": CommandEntry("nni.commands.log:stderr", "Print the last output of that process."),
    "trial": CommandEntry("nni.commands.log:trial", "What a trial has printed."),
}

Tail = Annotated[
    int | None, typer.Option("--tail", "-T", metavar="LINES", min=1, help="Only the last lines.")
]
Head = Annotated[
    int | None, typer.Option("--head", "-H", metavar="LINES", min=1, help="Only the first lines.")
]
JustPath = Annotated[
    bool, typer.Option("--path", "-p", help="Print the file's name, not its lines.")
]


def stdout(
    experiment: Experiment = None, tail: Tail = None, head: Head = None, path: JustPath = False
) -> None:
    """Print the log of the process that leads the experiment: its head."""
    _show(experiment, HEAD_LOG_NAME, tail, head, path)


def stderr(
    experiment: Experiment = None, tail: Tail = None, head: Head = None, path: JustPath = False
) -> None:
    """Print the last output of a head that ran in the background."""
    _show(experiment, HEAD_STDERR_NAME, tail, head, path)


def _show(
    experiment: str | None, name: str, tail: int | None, head: int | None, path: bool
) -> None:
    from dispatcher.safe_text import keep_lines
    from dispatcher.terminal.console import note, say

    if head is not None and tail is not None:
        raise typer.BadParameter("--head and --tail exclude each other", param_hint="'--tail'")
    file: Path = find_handle(experiment, purpose="use").place.logs / name
    if path:
        say(str(file))
        return
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    if not lines:
        note(f"{file} is empty")
        return
    shown = lines[:head] if head is not None else lines[-tail:] if tail is not None else lines
    say(keep_lines("\n".join(shown)))


def trial(trial: TrialIds = None, experiment: Experiment = None) -> None:
    """Print what a trial has printed, as `bequeath trial log` does.

    Without --trial_id the folders of all trials are listed, as NNI does.
    """
    from dispatcher.cli.trial.log import log
    from dispatcher.nni.rows import is_job
    from dispatcher.terminal.console import say

    if trial is not None:
        log(trial_number(trial), experiment)
        return
    handle = find_handle(experiment, purpose="use")
    for one in handle.trials():
        if is_job(one):
            say(f"Trial:{one.id} path:{handle.place.trial(one.id)}")
