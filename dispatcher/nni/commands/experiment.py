"""``bequeath nni experiment`` and ``config``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Yes, find_handle
from dispatcher.cli.experiment.verbs import Format
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.cli.out_file import write_out
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
        "nni.commands.experiment:export", "Write parameters and results as JSON or CSV."
    ),
    "import": CommandEntry(
        "nni.commands.experiment:import_data", "Give the tuner the results of another one."
    ),
    "delete": CommandEntry(
        "nni.commands.experiment:delete", "Delete an experiment with logs and weights."
    ),
    "save": CommandEntry("nni.commands.experiment:save", "Copy an experiment into a folder."),
    "load": CommandEntry(
        "nni.commands.refused:experiment_load", "Refused: a copy needs no loading.", lenient=True
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
    from dispatcher.nni.rows import standing
    from dispatcher.terminal.console import print_json

    word, errors = standing(find_handle(experiment, purpose="use"))
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
    from dispatcher.cli.experiment.verbs import import_results

    import_results(file, experiment)


def delete(
    experiment: Experiment = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All experiments; each is asked for.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete an experiment, as `bequeath experiment delete` does."""
    from dispatcher.cli.experiment.care import delete as ours
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
    from dispatcher.cli.experiment.care import backup

    if code:
        raise UserError(
            "the code stays where it is",
            hint="leave it out, and copy the code folder yourself",
            where="--saveCodeDir",
        )
    backup(experiment, path, weights=True)


Intermediate = Annotated[
    bool, typer.Option("--intermediate", "-i", help="Include the intermediate results.")
]


def export(
    file: File,
    form: Annotated[Format, typer.Option("--type", "-t", metavar="FORMAT", help="json or csv.")],
    intermediate: Intermediate = False,
    experiment: Experiment = None,
) -> None:
    """Write parameters and results of all finished trials.

    JSON: rows of `parameter`, `value` (a JSON text) and `trialJobId`. CSV: a column for each
    parameter, `reward` or the keys of the result, and `trialJobId`. `bequeath experiment export`
    has states, parents and times as well.
    """
    from dispatcher import queries
    from dispatcher.nni import rows

    documents: list[dict[str, Any]] = []
    with find_handle(experiment, purpose="use").reading() as reader:
        for one in queries.list_trials(reader):
            if not rows.is_result(one):
                continue
            reported = None
            if intermediate:
                reported = rows.intermediates(one, queries.metrics(reader, one.id))
            if form is Format.CSV:
                documents.append(rows.table_row(one, reported))
                continue
            document = rows.result(one)
            documents.append(
                document if reported is None else {**document, "intermediate": reported}
            )
    text = _table(documents) if form is Format.CSV else json.dumps(documents, ensure_ascii=False)
    write_out(file, text.encode(errors="replace"))
    note(f"wrote {file}")


def _table(documents: list[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in documents for name in row)) or ["trialJobId"]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(documents)
    return out.getvalue()
