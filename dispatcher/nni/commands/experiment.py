"""``bequeath nni experiment`` and ``config``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Yes
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import UserError
from dispatcher.nni.commands.arguments import File, Needed
from dispatcher.terminal.console import note

EXPERIMENT: Table = {
    "show": CommandEntry("nni.commands.experiment:show", "Print an experiment's settings as JSON."),
    "status": CommandEntry(
        "nni.commands.experiment:status",
        "Print the state of an experiment, one word, as JSON.",
    ),
    "list": CommandEntry(
        "nni.commands.experiment:list_running", "List experiments that run, or all."
    ),
    "export": CommandEntry(
        "nni.commands.export:export", "Write parameters and results as JSON or CSV."
    ),
    "import": CommandEntry(
        "nni.commands.experiment:import_data", "Tell the tuner results of another one."
    ),
    "delete": CommandEntry(
        "nni.commands.experiment:delete", "Delete an experiment with logs and weights."
    ),
    "save": CommandEntry("nni.commands.experiment:save", "Copy an experiment into a folder."),
    "load": CommandEntry(
        "nni.commands.refused:experiment_load", "Refused: a copy needs no loading."
    ),
}
CONFIG: Table = {
    "show": CommandEntry("nni.commands.experiment:show", "Print an experiment's settings as JSON.")
}


def show(experiment: Experiment = None) -> None:
    """Print an experiment's settings as they are now, as `bequeath experiment show` does."""
    from dispatcher.cli.experiment.verbs import show as ours

    ours(experiment)


def status(experiment: Experiment = None) -> None:
    """Print `{"errors": [], "status": WORD}`, as NNI does; `bequeath status` says more.

    WORD is one of INITIALIZED, RUNNING, STOPPING, STOPPED, DONE and ERROR.
    """
    from dispatcher.experiments.find import find_one
    from dispatcher.nni.rows import standing
    from dispatcher.terminal.console import print_json

    word, errors = standing(find_one(experiment, None).folder)
    print_json({"errors": errors, "status": word})


def list_running(
    everything: Annotated[
        bool, typer.Option("--all", help="Include experiments that do not run.")
    ] = False,
) -> None:
    """List the experiments that run; with --all as `bequeath experiment list` does."""
    from dispatcher.cli.experiment.verbs import print_experiments
    from dispatcher.experiments.find import all_experiments

    kept = all_experiments(None)
    running = [one for one in kept if everything or one.status.value == "running"]
    if not running and kept:
        note("no experiment is running; --all lists those that are kept")
        return
    print_experiments(running)


def import_data(file: File, experiment: Experiment = None) -> None:
    """Give the tuner the results of another experiment, as `bequeath experiment import` does."""
    from dispatcher.cli.experiment.importing import import_results

    import_results(file, experiment)


def delete(
    experiment: Experiment = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All experiments; each is asked for.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete an experiment, as `bequeath experiment delete` does."""
    from dispatcher.cli.experiment.verbs import delete as ours
    from dispatcher.experiments.find import all_experiments

    if (experiment is None) != everything:
        raise typer.BadParameter("name one experiment, or add --all", param_hint="'EXPERIMENT'")
    named = [one.folder for one in all_experiments(None)] if everything else [experiment or ""]
    for one in named:
        ours(str(one), yes=yes)


def save(
    experiment: Needed,
    path: Annotated[
        Path, typer.Option("--path", "-p", metavar="DIR", help="Folder to put the copy in.")
    ] = Path(),
    code: Annotated[
        bool,
        typer.Option(
            "--saveCodeDir", "-s", help="Refused: a copy of the code is kept by `codeSnapshot`."
        ),
    ] = False,
) -> None:
    """Copy an experiment into a folder, under its id, as `bequeath experiment backup` does.

    Weights come along. The copy is taken up by `bequeath nni resume ID --experiment_dir DIR`.
    """
    from dispatcher.cli.experiment.store import backup

    if code:
        raise UserError(
            "the code stays where it is",
            hint="leave it out, and copy the code folder yourself",
            where="--saveCodeDir",
        )
    backup(experiment, path, weights=True)
