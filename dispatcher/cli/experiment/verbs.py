"""``bequeath experiment``: what is kept of experiments, and changing one while it runs."""

from __future__ import annotations

import json
import shutil
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
    from dispatcher.experiment.snapshot import read_shown
    from dispatcher.experiments.find import find_one
    from dispatcher.folders.experiment_folder import ExperimentFolder

    located = find_one(experiment, folder, others=True)
    record = ExperimentFolder(located.folder)
    settings = read_shown(record.read_config(), str(record.config))
    print_json({"experiment": located.id, "folder": str(located.folder), "settings": settings})


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
    from dispatcher.experiments.find import find_one

    located = find_one(experiment, folder, others=True)
    with queries.ExperimentReader.open(located.folder) as reader:
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
    from dispatcher.control.client import HeadClient
    from dispatcher.experiments.find import find_one
    from dispatcher.folders.status import is_led

    new: Any = value
    if value.startswith("@"):
        from dispatcher.experiment import load_search_space

        new = load_search_space(value[1:])
    located = find_one(experiment, folder, change=True)
    running = is_led(located.folder)
    if running:
        with HeadClient(located.folder) as client:
            client.ask("update", key=key, value=new)
    else:
        warning = _update_record(located.folder, key, new)
        if warning:
            note(warning)
    if as_json:
        print_json({"experiment": located.id, "key": key, "running": running})
    else:
        say(f"{located.id}: {key} is {value}{'' if running else ' from the next resume on'}")
        if key in ("maxTrialNumber", "max_trial_number"):
            _note_what_is_past(located.folder, new)


def _note_what_is_past(folder: Path, limit: Any) -> None:
    """Note that a limit below what was proposed already ends no trial and allows no new one."""
    from dispatcher import queries

    with queries.ExperimentReader.open(folder) as reader:
        submitted = queries.experiment_summary(reader).submitted
    if str(limit).isdecimal() and int(limit) < submitted:
        note(f"{formatting.count(submitted, 'trial')} were proposed already: no more will be")


def _update_record(folder: Path, key: str, value: Any) -> str:
    """Change the record, and return a warning for the user; empty if there is none.

    The lead is held meanwhile, so that no head can begin.
    """
    from dispatcher.experiment.snapshot import from_json, to_json, to_shared
    from dispatcher.experiment.updates import apply_update
    from dispatcher.folders.experiment_folder import ExperimentFolder
    from dispatcher.maintenance.retention import gone_before_it_goes_on
    from dispatcher.store.leadership import Leadership

    record = ExperimentFolder(folder)
    with Leadership.keep_heads_out(folder):
        config = from_json(record.read_config(), str(record.config))
        config = apply_update(config, key, value)
        warning = gone_before_it_goes_on(record, config)
        record.change_config(to_json(config), to_shared(config))
    return warning


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
    from dispatcher.experiments.find import find_folder
    from dispatcher.folders.experiment_folder import run_folder
    from dispatcher.folders.status import is_led

    path = find_folder(experiment, folder)
    if is_led(path):
        raise UserError(f"{path.name} is running", hint=f"end it first: bequeath stop {path.name}")
    confirmed(f"Delete {path} with everything in it?", yes)
    sockets = run_folder(path)  # read first: the experiment's folder may name it
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise UserError(f"cannot be deleted: {error.strerror}", where=str(path)) from error
    shutil.rmtree(sockets, ignore_errors=True)
    if as_json:
        print_json({"experiment": path.name, "deleted": str(path)})
    else:
        say(f"{path.name} is deleted")


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
    from dispatcher.experiments.find import find_folder
    from dispatcher.folders.experiment_folder import ExperimentFolder
    from dispatcher.store.leadership import Leadership
    from dispatcher.store.verify import rebuild as rebuild_tables
    from dispatcher.store.verify import verify as verify_store

    # A store that is damaged cannot be asked for its experiment's name.
    path = find_folder(experiment, folder)
    store = ExperimentFolder(path).journal
    with Leadership.keep_heads_out(path):
        if rebuild:
            rebuild_tables(store)
        result = verify_store(store)
    if as_json:
        print_json({"experiment": path.name, "ok": result.ok, **_report(result)})
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


def _report(result: Any) -> dict[str, Any]:
    return {
        "events": result.events,
        "trials": result.trials,
        "damage": list(result.damage),
        "broken_at": result.broken_at,
        "differences": [str(difference) for difference in result.differences],
        "mended": result.mended,
    }
