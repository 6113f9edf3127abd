"""``bequeath experiment``: what is kept of experiments, and changing one."""

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
    context_for,
)
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.cli.out_file import write_out
from dispatcher.errors import UserError
from dispatcher.safe_text import safe_json
from dispatcher.terminal import formatting
from dispatcher.terminal.console import (
    Column,
    is_terminal,
    note,
    pass_on,
    pass_on_bytes,
    print_json,
    print_table,
    say,
)

if TYPE_CHECKING:
    from dispatcher.queries import ExperimentListing

EXPERIMENT: Table = {
    "list": CommandEntry("cli.experiment.verbs:list_all", "List all experiments that are kept."),
    "show": CommandEntry(
        "cli.experiment.verbs:show", "Print an experiment's settings as they are now."
    ),
    "export": CommandEntry("cli.experiment.verbs:export", "All trials, or metrics, as a table."),
    "at": CommandEntry("cli.experiment.moment:at", "A search as it was at a moment."),
    "update": CommandEntry("cli.experiment.verbs:update", "Change a limit or the search space."),
    "import": CommandEntry(
        "cli.experiment.verbs:import_results", "Give the tuner the results of another one."
    ),
    "fetch": CommandEntry(
        "cli.experiment.care:fetch", "Fetch the files of trials on other machines."
    ),
    "note": CommandEntry("cli.notes:note_experiment", "Write a note beside an experiment."),
    "tag": CommandEntry("cli.notes:tag_experiment", "Give an experiment tags."),
    "star": CommandEntry("cli.notes:star_experiment", "Give an experiment a star."),
    "delete": CommandEntry(
        "cli.experiment.care:delete", "Delete an experiment with logs and weights."
    ),
    "verify": CommandEntry(
        "cli.experiment.care:verify", "Check the store against its own journal."
    ),
    "replay": CommandEntry(
        "cli.experiment.replay:replay", "Show row by row what led a trial to where it stands."
    ),
    "backup": CommandEntry("cli.experiment.care:backup", "Copy an experiment, also while it runs."),
    "compact": CommandEntry("cli.experiment.care:compact", "Make an experiment's journal shorter."),
}


class Format(StrEnum):
    """The formats of ``export``."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


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
    from dispatcher.operations.arguments import ListExperiments
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_LIST

    wanted = ListExperiments(everywhere=everywhere)
    answer = perform(EXPERIMENT_LIST, context_for("experiment list", folder), wanted)
    if as_json:
        print_json(answer)
    else:
        print_experiments(answer.experiments)
    if answer.others:
        many = formatting.count(answer.others, "experiment")
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
        f"unreadable: {one.problem}" if one.problem else one.status.value,
        formatting.moment(one.created_at),
        str(one.trials),
        formatting.number(one.best_value),
        str(Path(one.folder).parent),
    )


def show(experiment: Experiment = None, folder: Folder = None) -> None:
    """Print an experiment's settings, resolved and as they are now, as JSON."""
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_SHOW

    context = context_for("experiment show", folder)
    print_json(perform(EXPERIMENT_SHOW, context, experiment=experiment))


def _form_of(out: Path | None) -> Format:
    ending = "" if out is None else out.suffix.removeprefix(".").lower()
    return next((each for each in Format if each == ending), Format.JSON)


def export(
    experiment: Experiment = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="json, csv or parquet; by the ending of the file, else json.",
        ),
    ] = None,
    metrics: Annotated[
        bool,
        typer.Option("--metrics", help="Write every value that trials reported, one row each."),
    ] = False,
    out: OutFile = None,
    folder: Folder = None,
) -> None:
    """Write all trials, one row each; parameters in columns of their own.

    `kernel` within `block` is `parameters.block.kernel`; a name that has a dot itself stands in
    backticks there. With `--metrics`, every intermediate and final value instead. `parquet` needs
    `bequeath[parquet]`.
    """
    form = form or _form_of(out)
    content = _exported(experiment, form, folder, metrics=metrics)
    if out is not None:
        write_out(out, content)
        note(f"wrote {out}")
    elif form is not Format.PARQUET:
        pass_on(content.decode())  # CSV is data in a pipe, and has no escapes of its own
    elif is_terminal():
        raise UserError(
            "Parquet is no text for a terminal", hint="name a file: --out trials.parquet"
        )
    else:
        pass_on_bytes(content)


def _exported(experiment: str | None, form: Format, folder: Path | None, *, metrics: bool) -> bytes:
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_CSV, EXPERIMENT_EXPORT

    context = context_for("experiment export", folder)
    if form is Format.PARQUET or metrics:
        view = context.handle(experiment, EXPERIMENT_EXPORT.purpose)
        if form is Format.PARQUET:
            return view.parquet(metrics=metrics)
        text = (
            view.metrics_text("csv") if form is Format.CSV else safe_json(view.metrics_text("json"))
        )
    elif form is Format.CSV:
        text = perform(EXPERIMENT_CSV, context, experiment=experiment)
    else:
        rows = perform(EXPERIMENT_EXPORT, context, experiment=experiment)
        text = safe_json(json.dumps(rows, indent=2, ensure_ascii=False)) + "\n"
    return text.encode(errors="replace")


def update(
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help="trialConcurrency, maxTrialNumber, maxExperimentDuration, stopWhen, lookahead or "
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
    new: Any = value
    if value.startswith("@"):
        from dispatcher.experiment import load_search_space

        new = load_search_space(value[1:])
    from dispatcher.operations.arguments import UpdateExperiment
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_UPDATE

    wish = UpdateExperiment(key=key, value=new)
    context = context_for("experiment update", folder)
    done = perform(EXPERIMENT_UPDATE, context, wish, experiment=experiment)
    if done.warning:
        note(done.warning)
    if as_json:
        print_json(done)
        return
    say(f"{done.experiment}: {key} is {value}{'' if done.running else ' from the next resume on'}")
    if done.beyond:
        note(f"{formatting.count(done.beyond, 'trial')} were proposed already: no more will be")


Data = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="JSON: a list of objects with `parameter` and `value`, as "
        "`bequeath nni experiment export` writes them.",
        show_default=False,
    ),
]


def import_results(
    file: Data, experiment: Experiment = None, folder: Folder = None, as_json: Json = False
) -> None:
    """Give the tuner of a running experiment the results of another one.

    They create no trials. The tuner receives each of them once, in one order with its own results,
    and again when it is rebuilt; the experiment's log names a tuner that cannot use them.
    """
    from dispatcher.control.imported import results_text
    from dispatcher.operations.arguments import ImportResults
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_IMPORT

    rows = _read(file)
    try:
        results_text(rows)  # checks all of them before the first is sent
    except UserError as error:
        raise UserError(error.message, hint=error.hint, where=str(file)) from error
    context = context_for("experiment import", folder)
    wish = ImportResults(rows=rows)
    answer = perform(EXPERIMENT_IMPORT, context, wish, experiment=experiment)
    if as_json:
        print_json(answer)
    else:
        say(f"{answer.rows} results for the tuner of {answer.experiment}")


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        rows = json.loads(file.expanduser().read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(file)) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"is not JSON: {error}", where=str(file)) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(
            "must be a list of objects",
            hint="""write '[{"parameter": {…}, "value": 0.9}, …]'""",
            where=str(file),
        )
    return rows
