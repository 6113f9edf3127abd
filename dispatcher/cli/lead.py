"""``bequeath lead``: what a job or a pod runs, again and again, so that an experiment is led."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from dispatcher.cli.arguments import ExperimentFile
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.errors import ExperimentBusy, Superseded
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.status import ExperimentStatus
from dispatcher.terminal.console import note

#: Seconds between two looks whether an experiment has lost a head that somebody else started.
LOOK_EVERY_S = 5.0

#: An experiment that stands so is not taken up by itself; and what that exits with.
_OVER = {
    ExperimentStatus.COMPLETED: ExitCode.OK,
    ExperimentStatus.FAILED: ExitCode.USER,
    ExperimentStatus.STOPPED: ExitCode.EXPERIMENT_STOPPED,
}


def lead(
    file: ExperimentFile,
    stay: Annotated[
        bool,
        typer.Option("--stay", help="Wait for SIGTERM where there is nothing to lead, as pods do."),
    ] = False,
) -> None:
    """Begin an experiment, or go on with the one of its name that is there: for jobs and pods.

    The newest one in BEQUEATH_HOME that has the file's name counts. One that lost its head goes on;
    one that is completed, failed or was stopped is kept as it is. SIGTERM ends the head alone, with
    exit code 130: trials in allocations go on for the next head, within headGrace.
    """
    handle = _newest(file) or _begun(file)
    status = handle.status().status
    if status in _OVER:
        note(f"experiment {handle.id} is {status.value}: it is kept as it is")
        if not stay:
            raise typer.Exit(_OVER[status])
    else:
        _lead(handle, stay=stay)
    if stay:
        _wait(handle)


def _newest(file: Path) -> ExperimentHandle | None:
    """The newest experiment of that name that is whole: a head may have died while it made one."""
    from dispatcher.experiment import load_experiment
    from dispatcher.experiments.find import all_experiments
    from dispatcher.experiments.known_folders import default_folder

    there = [one for one in all_experiments(default_folder()) if not one.problem]
    if not there:
        return None
    name = load_experiment(file, elsewhere=True).experiment_name
    folder = next((one.folder for one in there if one.name == name), None)
    return None if folder is None else ExperimentHandle.find(str(folder))


def _begun(file: Path) -> ExperimentHandle:
    from dispatcher.cli.run import configured

    handle = ExperimentHandle.create(configured(file, [], None))
    note(f"experiment {handle.id} in {handle.folder}")
    return handle


def _lead(handle: ExperimentHandle, *, stay: bool) -> None:
    """Lead to the end. Raises ``DispatcherError`` where another try may do better."""
    from dispatcher.cli import foreground

    try:
        foreground.lead(handle, as_json=False, leaves_trials=True)
    except (Superseded, ExperimentBusy) as error:
        if not stay:
            raise
        note(str(error))
    except typer.Exit:
        if not stay:
            raise
        note("nobody leads it any more; `bequeath resume -b` goes on with it")


def _wait(handle: ExperimentHandle) -> None:
    """Wait for SIGTERM, or for an experiment that somebody took up and that lost its head.

    Raises:
        typer.Exit: there is such a one; whoever starts this anew goes on with it.
    """
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    while not ended.wait(LOOK_EVERY_S):
        if handle.status().status is ExperimentStatus.INTERRUPTED:
            note(f"experiment {handle.id} has lost its head")
            raise typer.Exit(ExitCode.ENVIRONMENT)
    note("the experiment is kept")
