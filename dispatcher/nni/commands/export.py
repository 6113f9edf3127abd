"""``bequeath nni experiment export``: results in the layouts that NNI's users process further."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment
from dispatcher.cli.experiment.verbs import Format
from dispatcher.errors import UserError
from dispatcher.nni.commands.arguments import File
from dispatcher.terminal.console import note

if TYPE_CHECKING:
    from dispatcher.queries import TrialSummary

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
    from dispatcher.experiments.find import find_one
    from dispatcher.nni import rows

    located = find_one(experiment, None)
    documents: list[dict[str, Any]] = []
    with queries.ExperimentReader.open(located.folder) as reader:
        for one in queries.list_trials(reader):
            if not _finished(one):
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
    try:
        file.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=str(file)) from error
    note(f"wrote {file}")


def _finished(trial: TrialSummary) -> bool:
    return (
        trial.over and trial.result is not None and trial.outcome in ("succeeded", "stopped early")
    )


def _table(documents: list[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in documents for name in row)) or ["trialJobId"]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(documents)
    return out.getvalue()
