"""``bequeath experiment``: what is kept of experiments, and changing one while it runs."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import (
    Experiment,
    Folder,
    Json,
    OfExperiment,
    OutFile,
    Yes,
    confirmed,
)
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import UserError
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, pass_on, print_json, print_table, say
from dispatcher.terminal.safe_text import safe_json

if TYPE_CHECKING:
    from dispatcher.queries import ExperimentListing

EXPERIMENT: Table = {
    "list": CommandEntry("cli.experiment.verbs:list_all", "List all experiments that are kept."),
    "show": CommandEntry(
        "cli.experiment.verbs:show", "Print an experiment's settings as they are now."
    ),
    "export": CommandEntry("cli.experiment.verbs:export", "All trials as JSON or CSV."),
    "update": CommandEntry(
        "cli.experiment.verbs:update", "Change a limit or the search space while it runs."
    ),
    "import": CommandEntry(
        "cli.experiment.importing:import_results", "Tell the tuner results of another one."
    ),
    "fetch": CommandEntry(
        "cli.experiment.fetch:fetch", "Fetch the files of trials on other machines."
    ),
    "delete": CommandEntry(
        "cli.experiment.verbs:delete", "Delete an experiment with logs and weights."
    ),
    "verify": CommandEntry(
        "cli.experiment.verbs:verify", "Check the store against its own journal."
    ),
    "replay": CommandEntry(
        "cli.experiment.replay:replay", "Show row by row what led a trial to where it stands."
    ),
    "backup": CommandEntry(
        "cli.experiment.store:backup", "Copy an experiment, also while it runs."
    ),
    "compact": CommandEntry(
        "cli.experiment.store:compact", "Make an experiment's journal shorter."
    ),
}


class Format(StrEnum):
    """The formats of ``export``."""

    JSON = "json"
    CSV = "csv"


def list_all(
    everywhere: Annotated[
        bool, typer.Option("--all", help="Include those outside of BEQUEATH_HOME, if that is set.")
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """List all experiments that are kept, the newest first.

    These are the ones below BEQUEATH_HOME if that is set, else those of all folders that were ever
    used.
    """
    from dispatcher.experiments.find import all_experiments, experiments_of_others

    listings = all_experiments(folder, everywhere=everywhere)
    if as_json:
        print_json({"experiments": [one.to_json() for one in listings]})
    else:
        print_experiments(listings)
    if others := experiments_of_others(folder, everywhere=everywhere):
        many = formatting.count(others, "experiment")
        note(f"{many} of other users: name one by its path to see it")


def print_experiments(listings: list[ExperimentListing]) -> None:
    """Print a table of experiments, or a note that there are none yet."""
    if listings:
        print_table(COLUMNS, [_row(one) for one in listings])
    else:
        note("there are no experiments yet; start one with: bequeath run FILE")


COLUMNS = (
    Column("id"),
    Column("name", shrink=True),
    Column("status"),
    Column("began (UTC)", shrink=True),
    Column("trials", right=True),
    Column("best", right=True, style="bold"),
    Column("folder", shrink=True, style="dim"),
)


def _row(one: ExperimentListing) -> tuple[str, ...]:
    return (
        one.id,
        one.name,
        f"damaged: {one.problem}" if one.problem else one.status.value,
        formatting.moment(one.created_at),
        str(one.trials),
        formatting.number(one.best_value),
        str(Path(one.folder).parent),
    )


def show(experiment: Experiment = None, folder: Folder = None) -> None:
    """Print an experiment's settings, resolved and as they are now, as JSON."""
    from dispatcher.experiments.handle import ExperimentHandle

    handle = ExperimentHandle.find(experiment, folder)
    document = {"experiment": handle.id, "folder": str(handle.folder)}
    print_json({**document, "settings": handle.settings()})


def export(
    experiment: Experiment = None,
    form: Annotated[
        Format, typer.Option("--format", metavar="FORMAT", help="json or csv.")
    ] = Format.JSON,
    out: OutFile = None,
    folder: Folder = None,
) -> None:
    """Write all trials, one row each; parameters in columns of their own."""
    from dispatcher import queries
    from dispatcher.experiments.handle import ExperimentHandle

    with ExperimentHandle.find(experiment, folder).reading() as reader:
        if form is Format.CSV:
            text = queries.export_csv(reader)
        else:
            rows = queries.export_rows(reader)
            text = safe_json(json.dumps(rows, indent=2, ensure_ascii=False)) + "\n"
    if out is None:
        pass_on(text)  # CSV is data in a pipe, and has no escapes of its own
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=str(out)) from error
    note(f"wrote {out}")


def update(
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help="trialConcurrency, maxTrialNumber, maxExperimentDuration, lookahead or "
            "searchSpace.",
            show_default=False,
        ),
    ],
    value: Annotated[
        str,
        typer.Argument(
            metavar="VALUE",
            help="As in the file; for searchSpace JSON text or @FILE.",
            show_default=False,
        ),
    ],
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Change an experiment: at once if it runs, for its next `resume` if not."""
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    new: Any = value
    if value.startswith("@"):
        from dispatcher.experiment import load_search_space

        new = load_search_space(value[1:])
    handle = ExperimentHandle.find(experiment, folder, Purpose.CHANGE)
    done = handle.update(key, new)
    if done.warning:
        note(done.warning)
    if as_json:
        print_json({"experiment": handle.id, "key": key, "running": done.running})
        return
    say(f"{handle.id}: {key} is {value}{'' if done.running else ' from the next resume on'}")
    if key in ("maxTrialNumber", "max_trial_number") and str(new).isdecimal():
        # Such a limit ends no trial.
        submitted = handle.status().submitted
        if int(new) < submitted:
            note(f"{formatting.count(submitted, 'trial')} were proposed already: no more will be")


def delete(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="Id, the beginning of one, a name or a folder.",
            show_default=False,
        ),
    ],
    yes: Yes = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Delete an experiment: its folder with the journal, logs, and the weights in it.

    Weights below a `weightsRoot` outside of the folder stay where they are.
    """
    from dispatcher.experiments import care
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    handle = ExperimentHandle.find(experiment, folder, Purpose.DAMAGED)
    care.refuse_running(handle.place)
    confirmed(f"Delete {handle.folder} with everything in it?", yes)
    care.delete(handle.place)
    if as_json:
        print_json({"experiment": handle.id, "deleted": str(handle.folder)})
    else:
        say(f"{handle.id} is deleted")


def verify(
    experiment: Experiment = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the tables again from the journal.")
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Replay an experiment's journal and compare it with the tables made from it.

    The journal is the truth; the tables can be made again from it. Exit code 1 if they
    differ.
    """
    from dispatcher.experiments import care
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    # A store that is damaged cannot be asked for its experiment's name.
    handle = ExperimentHandle.find(experiment, folder, Purpose.DAMAGED)
    result = care.verify(handle.place, rebuild=rebuild)
    if as_json:
        print_json({"experiment": handle.id, "ok": result.ok, **result.to_json()})
    else:
        events = formatting.count(result.events, "event")
        trials = formatting.count(result.trials, "trial")
        say(f"{events}, {trials}: {'all of it holds' if result.ok else 'not all of it holds'}")
        for line in (*result.damage, *filter(None, [result.broken_at, result.mended])):
            say(line)
        for difference in result.differences:
            say(str(difference))
    if not result.ok:
        raise typer.Exit(ExitCode.GENERAL)
